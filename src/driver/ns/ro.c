/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/ro.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/mnt.h"
#include "sys/mount_line.h"
#include "sys/raw.h"
#include "sys/resolve.h"

enum { ATTRS = RAW_ATTR_RDONLY | RAW_ATTR_NODEV | RAW_ATTR_NOSUID, MOUNTINFO_MAX = 8 << 20 };

static int idmap_of(const struct tree *t, int i)
{
	return t->spec->rootful ? tree_userns(t, i) : FD_NONE;
}

static int fail(struct tree *t, int r, const char *path)
{
	(void)snprintf(t->what, sizeof t->what, "show '%.200s' read-only", path);
	return r;
}

/* An overlay over one layer must have another; this one is empty. */
static int open_empty(struct tree *t)
{
	int fd;

	if (mkdirat(t->stage_fd, "empty", 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(t->stage_fd, "empty", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int overlay(struct tree *t, int i, const char *path, const char *stage)
{
	auto_close int empty = open_empty(t), lower = FD_NONE;
	char lowers[64];
	const struct mnt_opt opts[] = {
		{ "lowerdir", lowers },
		{ "redirect_dir", "nofollow" },
		{ t->spec->rootful ? NULL : "userxattr", NULL },
		{ NULL, NULL },
	};
	int r;

	if (empty < 0)
		return empty;
	if (t->spec->rootful) {
		lower = mnt_bind_path(path, ATTRS, 0, idmap_of(t, i));
		r = tree_put(t, lower, stage);
	} else {
		lower = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = lower < 0 ? -errno : 0;
	}
	if (r < 0)
		return r;
	(void)snprintf(lowers, sizeof lowers, "/proc/self/fd/%d:/proc/self/fd/%d", lower, empty);
	return mnt_new("overlay", opts, ATTRS);
}

static int bind_file(struct tree *t, int i, const char *path)
{
	auto_close int fd = mnt_bind_path(path, ATTRS, 0, idmap_of(t, i));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	/* Nothing else may take the place of what was a file when it was asked for. */
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -ENODEV;
}

/* A mount below it may be of a kind that cannot be idmapped: then only the top. */
static int bind_tree(struct tree *t, int i, const char *path)
{
	int idmap = idmap_of(t, i), r = mnt_bind_path(path, ATTRS, 1, idmap);

	return r == -EINVAL && idmap >= 0 ? mnt_bind_path(path, ATTRS, 0, idmap) : r;
}

int ro_new(struct tree *t, int i)
{
	const struct cell_mount *m = &t->spec->mounts[i];
	const char *path = m->lower[0];
	char stage[32];
	struct stat st;
	int r;

	(void)snprintf(stage, sizeof stage, "%d.ro", i);
	if (stat(path, &st) < 0)
		return fail(t, -errno, path);
	if (!S_ISDIR(st.st_mode))
		r = bind_file(t, i, path);
	else
		r = m->has_owner ? overlay(t, i, path, stage) : bind_tree(t, i, path);
	return r < 0 ? fail(t, r, path) : r;
}

/* One mount of the host below mount i, at `point`, of which `rest` is beneath the top. */
static int show(struct tree *t, int i, const char *point, const char *rest, int nth)
{
	char dest[LIMIT_PATH], stage[32];
	auto_close int target = FD_NONE, fd = FD_NONE;
	struct stat st;
	int n = snprintf(dest, sizeof dest, "%s%s", t->spec->mounts[i].dest, rest);

	if (n >= (int)sizeof dest)
		return -ENAMETOOLONG;
	target = resolve_open(t->root_fd, dest, O_PATH);
	/* Hidden by another mount, or in a place that nobody can see. */
	if (target < 0 || stat(point, &st) < 0)
		return 0;
	(void)snprintf(stage, sizeof stage, "%d.ro.%d", i, nth);
	if (S_ISDIR(st.st_mode))
		fd = overlay(t, i, point, stage);
	else if (S_ISREG(st.st_mode))
		fd = bind_file(t, i, point);
	else
		return 0;
	return fd < 0 ? fd : mnt_attach(fd, target);
}

int ro_below(struct tree *t, int i)
{
	const struct cell_mount *m = &t->spec->mounts[i];
	auto_done(buf_done) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	char *save = NULL;
	size_t n = strlen(m->lower[0]);
	int nth = 0, r = 0;

	if (!m->has_owner || !t->spec->rootful)
		return 0;
	r = io_read_file(t->proc_fd, "self/mountinfo", &b);
	if (r < 0 || !b.data)
		return fail(t, r < 0 ? r : -ENODATA, m->lower[0]);
	for (char *l = strtok_r(b.data, "\n", &save); l && r == 0;
	     l = strtok_r(NULL, "\n", &save)) {
		struct mount_line line;

		if (!mount_line_cut(l, &line) || strncmp(line.point, m->lower[0], n) != 0 ||
		    line.point[n] != '/')
			continue;
		r = show(t, i, line.point, line.point + n, nth++);
		if (r < 0)
			(void)fail(t, r, line.point);
	}
	return r;
}
