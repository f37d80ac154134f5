/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify the mounts of a sandbox against its spec and the table of fixed mounts. Each is there,
 * with its type and flags; there is no other; and none propagates.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "driver/ns/posture.h"
#include "driver/ns/procfs.h"
#include "sys/files/resolve.h"
#include "sys/ns/mount_line.h"
#include "sys/process/raw.h"

enum { MOUNTINFO_MAX = 256 * 1024, LINES = 256 };

struct line {
	struct mount_line m;
	bool used;
};

struct table {
	struct line lines[LINES];
	int n;
};

static int cut_table(char *text, struct table *t, struct err *e)
{
	char *save = NULL;

	*t = (struct table){ .n = 0 };
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (t->n == LINES || !mount_line_cut(l, &t->lines[t->n++].m))
			return posture_differs(e, "mounts", "a list that can be read", str_of(l));
	return 0;
}

static struct line *at_point(struct table *t, const char *path)
{
	for (int i = 0; i < t->n; i++)
		if (!t->lines[i].used && strcmp(t->lines[i].m.point, path) == 0)
			return &t->lines[i];
	return NULL;
}

/* If links of the template lead elsewhere: find it by the id of the mount there. */
static struct line *at_target(struct table *t, int root_fd, const char *path)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_close int fd = resolve_open(root_fd, path, O_PATH);
	char name[40];
	const char *id;

	(void)snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	if (fd < 0 || io_read_file(AT_FDCWD, name, &b) < 0 || !b.data)
		return NULL;
	id = strstr(b.data, "mnt_id:");
	if (!id)
		return NULL;
	for (int i = 0; i < t->n; i++)
		if (!t->lines[i].used && atoi(t->lines[i].m.id) == atoi(id + strlen("mnt_id:")))
			return &t->lines[i];
	return NULL;
}

static bool has_option(const char *options, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = options; (at = strstr(at, word)); at += n)
		if ((at == options || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
			return true;
	return false;
}

/* Additional flags, as from a bind of the host's, are no less safe. */
static int check_line(struct line *l, const struct fixed_mount *want, const char *path,
		      struct err *e)
{
	static const struct {
		unsigned attr;
		const char *word;
	} flags[] = {
		{ RAW_ATTR_RDONLY, "ro" },
		{ RAW_ATTR_NOSUID, "nosuid" },
		{ RAW_ATTR_NODEV, "nodev" },
		{ RAW_ATTR_NOEXEC, "noexec" },
	};
	char what[160];

	l->used = true;
	(void)snprintf(what, sizeof what, "mount on '%.100s'", path);
	if (want->type && strcmp(l->m.type, want->type) != 0)
		return posture_differs(e, what, want->type, str_of(l->m.type));
	if (want->root && strcmp(l->m.root, want->root) != 0)
		return posture_differs(e, what, want->root, str_of(l->m.root));
	if (l->m.propagation)
		return posture_differs(e, what, "no propagation", str_of(l->m.propagation));
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (want->attrs & flags[i].attr && !has_option(l->m.options, flags[i].word))
			return posture_differs(e, what, flags[i].word, str_of(l->m.options));
	return 0;
}

static int check_spec(const struct posture *p, struct table *t, int i, struct err *e)
{
	const struct cell_mount *m = &p->l->spec->mounts[i];
	struct fixed_mount want = tree_expects(p->l->spec, i);
	struct line *l = at_point(t, m->dest);

	if (!l)
		l = at_target(t, p->root_fd, m->dest);
	if (!l) {
		char what[160];

		(void)snprintf(what, sizeof what, "mount on '%.100s'", m->dest);
		return posture_differs(e, what, want.type ? want.type : "a bind", STR("none"));
	}
	return check_line(l, &want, m->dest, e);
}

static int check_fixed(const struct posture *p, struct table *t, const struct fixed_mount *want,
		       struct err *e)
{
	struct line *l = at_point(t, want->path);
	struct stat st;
	char what[160];

	if (l)
		return check_line(l, want, want->path, e);
	if (want->maybe)
		return 0;
	/* A file that this kernel does not have needs no cover. */
	if (want->optional && fstatat(p->root_fd, want->path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		return 0;
	(void)snprintf(what, sizeof what, "mount on '%.100s'", want->path);
	return posture_differs(e, what, want->type ? want->type : "a bind", STR("none"));
}

/* List /proc as the sandbox sees it: each entry that is not allowed must have its cover. */
static int check_proc(const struct posture *p, struct table *t, struct err *e)
{
	int fd = openat(p->root_fd, "proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	int r = 0;

	if (!d) {
		(void)err_sys(e, errno, "look at the sandbox: list its /proc");
		fd_close(&fd);
		return -1;
	}
	while (r == 0 && (errno = 0, de = readdir(d))) {
		char path[sizeof "/proc/" + NAME_MAX];
		struct fixed_mount want;
		bool is_dir = false;

		if (!procfs_covers(dirfd(d), de, &is_dir))
			continue;
		(void)snprintf(path, sizeof path, "/proc/%s", de->d_name);
		want = procfs_cover(path, is_dir);
		r = check_fixed(p, t, &want, e);
	}
	if (r == 0 && errno)
		r = err_sys(e, errno, "look at the sandbox: list its /proc");
	(void)closedir(d);
	return r;
}

/* A read-only mount also shows the host's mounts below it, in any number. */
static bool below_ro(const struct cell_spec *s, const char *point)
{
	for (int i = 1; i < s->nmounts; i++) {
		size_t n = strlen(s->mounts[i].dest);

		if (s->mounts[i].kind == MOUNT_RO && strncmp(point, s->mounts[i].dest, n) == 0 &&
		    point[n] == '/')
			return true;
	}
	return false;
}

static int check_rest(const struct posture *p, struct table *t, struct err *e)
{
	static const struct fixed_mount ro = { .attrs = RAW_ATTR_RDONLY | RAW_ATTR_NODEV |
							RAW_ATTR_NOSUID };

	for (int i = 0; i < t->n; i++) {
		struct line *l = &t->lines[i];
		char what[160];

		if (l->used)
			continue;
		(void)snprintf(what, sizeof what, "mount on '%.100s'", l->m.point);
		if (!below_ro(p->l->spec, l->m.point))
			return posture_differs(e, what, "none", str_of(l->m.type));
		if (check_line(l, &ro, l->m.point, e) < 0)
			return -1;
	}
	return 0;
}

int posture_mounts(const struct posture *p, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	struct fixed_mount fixed[FIXED_MOUNTS];
	static struct table t; /* one launch at a time */
	int n = devproc_expects(p->l->spec, fixed);
	int r = io_read_file(p->proc_fd, "mountinfo", &b);

	if (r < 0 || !b.data)
		return err_sys(e, r < 0 ? -r : ENODATA, "look at the sandbox: read its mounts");
	if (cut_table(b.data, &t, e) < 0)
		return -1;
	for (int i = 0; i < p->l->spec->nmounts; i++)
		if (check_spec(p, &t, i, e) < 0)
			return -1;
	/* First, because a file of facts.h may lie on a cover. */
	if (check_proc(p, &t, e) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (check_fixed(p, &t, &fixed[i], e) < 0)
			return -1;
	return check_rest(p, &t, e);
}
