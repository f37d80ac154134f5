/* SPDX-License-Identifier: Apache-2.0 */
#include "image/template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/host_layer.h"
#include "image/host_mounts.h"

static void mount_done(struct template_mount *m)
{
	free(m->dest);
	for (int i = 0; i < m->nlower; i++)
		free(m->lower[i]);
}

void template_done(struct template *t)
{
	for (int i = 0; i < t->nmounts; i++)
		mount_done(&t->mounts[i]);
	free(t->name);
	*t = (struct template){ 0 };
}
DEFINE_AUTO(struct template, template_done)

/* Owns lower; NULL: set later. */
static int add_mount(struct template *t, enum mount_kind kind, const char *dest, char *lower,
		     struct err *e)
{
	struct template_mount m = { .kind = kind, .dest = strdup(dest), .nlower = 1 };

	m.lower[0] = lower;
	if (!m.dest || t->nmounts == TEMPLATE_MOUNTS) {
		mount_done(&m);
		return err_sys(e, ENOMEM, "cannot note the mount of '%s'", dest);
	}
	t->mounts[t->nmounts++] = m;
	return 0;
}

/* A sandbox that sees the state directory would see the files of all others. */
static int refuse_state_below(const struct host_mounts *m, const char *lower, const char *state,
			      struct err *e)
{
	if (!host_mounts_shows(m, lower, state))
		return 0;
	(void)err_set(e, ERR_INVALID,
		      "the state directory '%s' would be visible inside through '%s'", state,
		      lower);
	return err_hint(e, "set CAY_STATE to a directory that no template shows");
}

/* False if it cannot be read, too: then there is nothing to show. */
static bool dir_has_entries(const char *path)
{
	bool found = false;
	struct dirent *de;
	struct stat st;
	DIR *d;

	/* On most file systems each subdirectory adds a link. */
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_nlink > 2)
		return true;
	d = opendir(path);
	while (d && !found && (de = readdir(d)))
		found = strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
	if (d)
		closedir(d);
	return found;
}

/*
 * An overlay does not show what is mounted below its lower. Without privileges the kernel refuses
 * such a lower, because it could uncover what the mounts hide.
 */
static int add_host_dir(struct template *t, const char *dir, const struct host_mounts *m,
			const char *state, struct err *e)
{
	auto_free char *real = realpath(dir, NULL);
	enum mount_kind kind;

	if (!real)
		return err_sys(e, errno, "cannot look at '%s'", dir);
	if (refuse_state_below(m, real, state, e) < 0)
		return -1;
	kind = host_mounts_below(m, real) ? MOUNT_RO : MOUNT_OVERLAY;
	return add_mount(t, kind, dir, TAKE_PTR(real), e);
}

/* The host's directories that are shown as they are. */
static int add_host_dirs(struct template *t, const struct host_root *root,
			 const struct host_mounts *m, const char *state, struct err *e)
{
	if (add_host_dir(t, "/usr", m, state, e) < 0)
		return -1;
	if (dir_has_entries("/opt") && add_host_dir(t, "/opt", m, state, e) < 0)
		return -1;
	for (int i = 0; i < HOST_TOPS; i++) {
		char path[16];

		(void)snprintf(path, sizeof path, "/%s", root->top[i].name);
		if (root->top[i].kind == HOST_TOP_DIR && add_host_dir(t, path, m, state, e) < 0)
			return -1;
	}
	return 0;
}

/* Put the mask beside the base layer above a host directory. */
static int add_mask(struct template_mount *m, const char *base, struct err *e)
{
	const char *slash = strrchr(base, '/');
	char *mask;

	/* For a user, the kernel makes no overlay over a directory with mounts below it. */
	if (m->kind != MOUNT_OVERLAY && geteuid() != 0)
		return 0;
	if (asprintf(&mask, "%.*s/mask%s", (int)(slash - base), base, m->dest) < 0)
		return err_sys(e, ENOMEM, "cannot note the mask of '%s'", m->dest);
	if (access(mask, F_OK) < 0) {
		free(mask);
		return 0;
	}
	m->lower[1] = m->lower[0];
	m->lower[0] = mask;
	m->nlower = 2;
	return 0;
}

static int resolve_host(const char *state, struct template *t, const struct host_mounts *m,
			struct err *e)
{
	struct host_root root;

	/* The root's mount; its layer is built only after all checks pass. */
	if (add_mount(t, MOUNT_OVERLAY, "/", NULL, e) < 0 || host_root_scan(&root, e) < 0 ||
	    add_host_dirs(t, &root, m, state, e) < 0)
		return -1;
	if (host_layer_get(state, &root, &t->mounts[0].lower[0], e) < 0)
		return -1;
	for (int i = 1; i < t->nmounts; i++)
		if (add_mask(&t->mounts[i], t->mounts[0].lower[0], e) < 0)
			return -1;
	return 0;
}

static bool has_name(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
}

/* Follow no links: links of another root point elsewhere from here. */
static bool looks_like_root(int dir)
{
	auto_close int usr = openat(dir, "usr", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return has_name(dir, "bin") || has_name(dir, "sbin") || (usr >= 0 && has_name(usr, "bin"));
}

static int open_root(const char *path, char **ret_real, struct err *e)
{
	auto_free char *real = realpath(path, NULL);
	auto_close int dir = FD_NONE;

	if (!real && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "directory '%s' not found", path);
	if (!real)
		return err_sys(e, errno, "cannot look at '%s'", path);
	dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == ENOTDIR)
		return err_set(e, ERR_INVALID, "'%s' is not a directory", path);
	if (dir < 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	if (faccessat(dir, ".", X_OK, AT_EACCESS) < 0)
		return err_sys(e, errno, "cannot enter '%s'", path);
	if (!looks_like_root(dir))
		return err_set(e, ERR_INVALID,
			       "'%s' does not look like a root file system (no bin or usr/bin)",
			       path);
	*ret_real = TAKE_PTR(real);
	return 0;
}

static int resolve_dir(const char *path, const char *state, struct template *t,
		       const struct host_mounts *m, struct err *e)
{
	auto_free char *real = NULL;

	if (!*path) {
		(void)err_set(e, ERR_INVALID, "template 'dir:' names no directory");
		return err_hint(e, "templates are: host, dir:PATH, snap:SNAPSHOT");
	}
	if (open_root(path, &real, e) < 0 || refuse_state_below(m, real, state, e) < 0)
		return -1;
	if (host_mounts_shows(m, state, real))
		return err_set(e, ERR_INVALID, "'%s' lies inside the state directory '%s'", path,
			       state);
	return add_mount(t, MOUNT_OVERLAY, "/", TAKE_PTR(real), e);
}

static int not_found(const char *name, struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, "template '%.200s' not found", name);
	return err_hint(e, "templates are: host, dir:PATH, snap:SNAPSHOT");
}

int template_resolve(const char *state_dir, const char *name, struct template *ret, struct err *e)
{
	auto_done(template_done) struct template t = { .name = strdup(name) };
	auto_done(host_mounts_done) struct host_mounts mounts = { 0 };
	bool is_host = strcmp(name, "host") == 0;
	auto_free char *state = NULL;
	int r;

	if (!t.name)
		return err_sys(e, ENOMEM, "cannot resolve template '%.200s'", name);
	if (!is_host && strncmp(name, "dir:", 4) != 0)
		return not_found(name, e);
	state = realpath(state_dir, NULL);
	if (!state)
		return err_sys(e, errno, "cannot look at the state directory '%s'", state_dir);
	if (host_mounts_read(&mounts, e) < 0)
		return -1;
	r = is_host ? resolve_host(state, &t, &mounts, e)
		    : resolve_dir(name + 4, state, &t, &mounts, e);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct template){ 0 };
	return 0;
}

int template_host_prune(const char *state_dir, bool (*in_use)(void *ctx, const char *name),
			void *ctx)
{
	return host_layer_prune(state_dir, in_use, ctx);
}

int template_host_sweep(const char *state_dir)
{
	return host_layer_sweep(state_dir);
}
