/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's file systems: overlays over the template's layers, and read-only binds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "sys/mnt.h"
#include "sys/raw.h"
#include "sys/resolve.h"

enum { OPT_MAX = 256 }; /* the kernel's ceiling for one fsconfig value */

static int userns_of(const struct tree *t, int i)
{
	int own = t->l->owner_ns[i];

	return own >= 0 ? own : t->l->userns_fd;
}

/* "/proc/self/fd/5:/proc/self/fd/6" over fds that stay open until the overlay is made. */
static int open_lowers(struct tree *t, int i, int fds[CELL_LOWERS], char *opt)
{
	const struct cell_mount *m = &t->l->spec->mounts[i];
	int at = 0;

	for (int j = 0; j < m->nlower; j++) {
		if (t->l->spec->rootful)
			fds[j] = mnt_bind_path(m->lower[j], RAW_ATTR_RDONLY | RAW_ATTR_NODEV, 0,
					       userns_of(t, i));
		else
			fds[j] = open(m->lower[j], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[j] < 0) {
			int r = t->l->spec->rootful ? fds[j] : -errno;

			(void)snprintf(t->what, sizeof t->what, "open '%s'", m->lower[j]);
			return r;
		}
		at += snprintf(opt + at, OPT_MAX - (size_t)at, "%s/proc/self/fd/%d", j ? ":" : "",
			       fds[j]);
		if (at >= OPT_MAX)
			return -E2BIG;
	}
	return 0;
}

static int open_part(const struct tree *t, const char *part, int i, char *opt)
{
	char path[LIMIT_PATH];
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s/%d", t->l->spec->dir, part, i);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)snprintf(opt, OPT_MAX, "/proc/self/fd/%d", fd);
	return fd < 0 ? -errno : fd;
}

/* The detached overlay of mount i. */
static int new_overlay(struct tree *t, int i)
{
	char lower[OPT_MAX], upper[OPT_MAX], work[OPT_MAX];
	int fds[CELL_LOWERS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	auto_close int upper_fd = open_part(t, "upper", i, upper);
	auto_close int work_fd = open_part(t, "work", i, work);
	const struct mnt_opt opts[] = {
		{ "lowerdir", lower },
		{ "upperdir", upper },
		{ "workdir", work },
		{ "index", "off" },
		{ t->l->spec->rootful ? NULL : "userxattr", NULL },
		{ NULL, NULL },
	};
	int r = upper_fd < 0 ? upper_fd : work_fd < 0 ? work_fd : open_lowers(t, i, fds, lower);

	if (r == 0) {
		r = mnt_new("overlay", opts, RAW_ATTR_NODEV);
		if (r < 0)
			(void)snprintf(t->what, sizeof t->what, "mount overlay for '%s' over '%s'",
				       t->l->spec->mounts[i].dest, t->l->spec->mounts[i].lower[0]);
	}
	for (int j = 0; j < CELL_LOWERS; j++)
		fd_close(&fds[j]);
	return r;
}

static int new_bind(struct tree *t, int i)
{
	const struct cell_mount *m = &t->l->spec->mounts[i];
	int idmap = t->l->spec->rootful ? userns_of(t, i) : FD_NONE;
	unsigned attrs = RAW_ATTR_RDONLY | RAW_ATTR_NODEV | RAW_ATTR_NOSUID;
	int r = mnt_bind_path(m->lower[0], attrs, 1, idmap);

	/* A mount below it may be of a kind that cannot be idmapped: then only the top. */
	if (r == -EINVAL && idmap >= 0)
		r = mnt_bind_path(m->lower[0], attrs, 0, idmap);
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "bind '%s'", m->lower[0]);
	return r;
}

/* Attach at its place inside, resolved as the sandbox would, made where it is missing. */
static int attach(struct tree *t, int i, int mount_fd)
{
	const struct cell_spec *s = t->l->spec;
	const char *dest = s->mounts[i].dest;
	uid_t root = s->rootful ? s->uid_base : 0;
	auto_close int target = FD_NONE;
	struct stat st;
	int r;

	if (fstat(mount_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		target = resolve_mkfile(t->root_fd, dest, root, root);
	else
		target = resolve_mkdirs(t->root_fd, dest, 0755, root, root);
	r = target < 0 ? target : mnt_attach(mount_fd, target);
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount on '%s' inside", dest);
	return r;
}

/*
 * The root must be attached before anything can be attached below it. It goes onto the
 * sandbox's own directory, in this mount namespace only.
 */
static int attach_root(struct tree *t, int mount_fd)
{
	auto_close int at = open(t->l->spec->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = at < 0 ? -errno : mnt_attach(mount_fd, at);

	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount the root");
	return r;
}

int tree_mounts(struct tree *t)
{
	auto_close int root = new_overlay(t, 0);
	int rest[CELL_MOUNTS];
	int n = t->l->spec->nmounts, r = root < 0 ? root : 0;

	/* All are made before the root hides the sandbox's directory, where the uppers lie. */
	for (int i = 1; i < n; i++) {
		bool overlay = t->l->spec->mounts[i].kind == MOUNT_OVERLAY;

		rest[i] = r < 0 ? FD_NONE : overlay ? new_overlay(t, i) : new_bind(t, i);
		if (rest[i] < 0 && r == 0)
			r = rest[i];
	}
	if (r == 0)
		r = attach_root(t, root);
	if (r == 0)
		t->root_fd = TAKE_FD(root);
	for (int i = 1; i < n; i++) {
		if (r == 0)
			r = attach(t, i, rest[i]);
		fd_close(&rest[i]);
	}
	return r;
}
