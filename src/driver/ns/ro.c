/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/ro.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "sys/files/resolve.h"
#include "sys/ns/mnt.h"
#include "sys/ns/mount_line.h"
#include "sys/process/raw.h"

enum {
	ATTRS = RAW_ATTR_RDONLY | RAW_ATTR_NODEV | RAW_ATTR_NOSUID,
	MOUNTINFO_MAX = 8 << 20,
	COPY_MAX = 16 << 20, /* largest file to copy; copies are memory */
};

#define COPY "file" /* its name in its own tmpfs */

static int idmap_of(const struct tree *t, int i)
{
	return t->spec->rootful ? tree_userns(t, i) : FD_NONE;
}

static int fail(struct tree *t, int r, const char *path)
{
	(void)snprintf(t->what, sizeof t->what,
		       r == -EFBIG ? "show '%.150s' read-only (the kernel has no overlay for it, "
				     "and only 16 MiB are copied; try its directory)"
				   : "show '%.200s' read-only",
		       path);
	return r;
}

/* An overlay without an upper needs two lowers; this one is empty. */
static int open_empty(struct tree *t)
{
	int fd;

	if (mkdirat(t->stage_fd, "empty", 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(t->stage_fd, "empty", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A lower layer, with the sandbox's ids if we are root. */
static int open_lower(struct tree *t, int i, const char *path, const char *stage)
{
	auto_close int fd = FD_NONE;
	int r = 0;

	if (t->spec->rootful) {
		fd = mnt_bind_path(path, ATTRS, 0, idmap_of(t, i));
		r = tree_put(t, fd, stage);
	} else {
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	return r < 0 ? r : TAKE_FD(fd);
}

/* mask: a layer above it, or NULL. */
static int overlay(struct tree *t, int i, const char *path, const char *mask, const char *stage)
{
	auto_close int empty = open_empty(t), lower = FD_NONE, above = FD_NONE;
	char lowers[96], at[40];
	const struct mnt_opt opts[] = {
		{ "lowerdir", lowers },
		{ "redirect_dir", "nofollow" },
		{ t->spec->rootful ? NULL : "userxattr", NULL },
		{ NULL, NULL },
	};
	int n = 0;

	if (empty < 0)
		return empty;
	lower = open_lower(t, i, path, stage);
	if (lower < 0)
		return lower;
	if (mask) {
		(void)snprintf(at, sizeof at, "%s.mask", stage);
		above = open_lower(t, i, mask, at);
		if (above < 0)
			return above;
		n = snprintf(lowers, sizeof lowers, "/proc/self/fd/%d:", above);
	}
	(void)snprintf(lowers + n, sizeof lowers - (size_t)n, "/proc/self/fd/%d:/proc/self/fd/%d",
		       lower, empty);
	return mnt_new("overlay", opts, ATTRS);
}

/* True if the overlay shows the requested file, and not one that a mount hides. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return S_ISREG(b->st_mode) && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Bind a file of a mount on the stage: only an attached mount can be bound. */
static int bind_on_stage(struct tree *t, int mount_fd, const char *stage, const char *name,
			 const struct stat *want)
{
	auto_close int file = FD_NONE;
	char at[40];
	struct stat st;
	int r;

	(void)snprintf(at, sizeof at, "%s.file", stage);
	r = tree_put(t, mount_fd, at);
	if (r < 0)
		return r;
	file = openat(mount_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0 || fstat(file, &st) < 0)
		return -errno;
	return want && !is_same_file(want, &st) ? -ESTALE : mnt_bind(file, ATTRS, 0, FD_NONE);
}

/* The file from an overlay over its directory. */
static int overlay_file(struct tree *t, int i, const char *path, const struct stat *st,
			const char *stage)
{
	const char *slash = strrchr(path, '/');
	auto_close int fd = FD_NONE;
	char dir[LIMIT_PATH];

	if (!slash || !str_copy(dir, sizeof dir, (struct str){ path, (size_t)(slash - path) }))
		return -ENAMETOOLONG;
	fd = overlay(t, i, slash == path ? "/" : dir, NULL, stage);
	return fd < 0 ? fd : bind_on_stage(t, fd, stage, slash + 1, st);
}

/* The copy's owner inside: the sandbox's user, root, or for any other owner nobody. */
static int give_away(const struct tree *t, int i, int fd, const struct stat *st)
{
	const struct cell_spec *s = t->spec;
	bool own = s->mounts[i].has_owner && st->st_uid == s->mounts[i].owner;
	uid_t id = s->uid_base + (own ? s->user : st->st_uid == 0 ? 0 : 65534);

	if (s->rootful && fchown(fd, id, id) < 0)
		return -errno;
	return fchmod(fd, st->st_mode & 0777) < 0 ? -errno : 0;
}

static int write_copy(const struct tree *t, int i, int to, const char *path, struct stat *st)
{
	auto_done(buf_done) struct buf b = BUF_INIT(COPY_MAX);
	auto_close int from = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_close int fd = FD_NONE;
	int r;

	if (from < 0 || fstat(from, st) < 0)
		return -errno;
	/* It was a file when it was requested; nothing else may take its place. */
	if (!S_ISREG(st->st_mode))
		return -ENODEV;
	r = io_read_all(from, &b);
	if (r < 0)
		return r == -E2BIG ? -EFBIG : r;
	fd = openat(to, COPY, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = b.len ? io_write_all(fd, b.data, b.len) : 0;
	if (r == 0)
		r = give_away(t, i, fd, st);
	return r == 0 && futimens(fd, (struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno
											   : r;
}

/* If the kernel makes no overlay: the file is a mount point, or a mount is beside it. */
static int copy_file(struct tree *t, int i, const char *path, const char *stage)
{
	static const struct mnt_opt opts[] = { { "mode", "0755" }, { NULL, NULL } };
	auto_close int fd = mnt_new("tmpfs", opts, ATTRS & ~(unsigned)RAW_ATTR_RDONLY);
	struct stat st;
	char at[40];
	int r = fd < 0 ? fd : write_copy(t, i, fd, path, &st);

	(void)snprintf(at, sizeof at, "%s.copy", stage);
	if (r == 0)
		r = mnt_make_readonly(fd);
	return r < 0 ? r : bind_on_stage(t, fd, at, COPY, NULL);
}

static int show_file(struct tree *t, int i, const char *path, const struct stat *st,
		     const char *stage)
{
	int r;

	if (!S_ISREG(st->st_mode))
		return -ENODEV;
	r = overlay_file(t, i, path, st, stage);
	return r < 0 ? copy_file(t, i, path, stage) : r;
}

/* A template directory with mounts below it, over which a user can make no overlay. */
static int bind_tree(struct tree *t, int i, const char *path)
{
	return mnt_bind_path(path, ATTRS, 1, idmap_of(t, i));
}

/* A file mounted below a directory. A system's file may be large, so it is bound. */
static int show_mounted_file(struct tree *t, int i, const char *path, const struct stat *st,
			     const char *stage)
{
	if (t->spec->mounts[i].has_owner)
		return show_file(t, i, path, st, stage);
	return mnt_bind_path(path, ATTRS, 0, idmap_of(t, i));
}

/* The host's path; at most a mask is above it (image/host_mask.h). */
static const char *shown_path(const struct cell_mount *m)
{
	return m->lower[m->nlower - 1];
}

/* The part of the mask for a directory below the top, or NULL. */
static const char *mask_of(const struct cell_mount *m, const char *rest, char out[LIMIT_PATH])
{
	struct stat st;

	if (m->nlower < 2 || snprintf(out, LIMIT_PATH, "%s%s", m->lower[0], rest) >= LIMIT_PATH)
		return NULL;
	return lstat(out, &st) == 0 && S_ISDIR(st.st_mode) ? out : NULL;
}

int ro_new(struct tree *t, int i)
{
	const struct cell_mount *m = &t->spec->mounts[i];
	const char *path = shown_path(m);
	char stage[32], mask[LIMIT_PATH];
	struct stat st;
	int r;

	(void)snprintf(stage, sizeof stage, "%d.ro", i);
	if (stat(path, &st) < 0)
		return fail(t, -errno, path);
	if (!S_ISDIR(st.st_mode))
		r = show_file(t, i, path, &st, stage);
	else
		r = m->has_owner || t->spec->rootful
			    ? overlay(t, i, path, mask_of(m, "", mask), stage)
			    : bind_tree(t, i, path);
	return r < 0 ? fail(t, r, path) : r;
}

/* Show one host mount below mount i, at `point`; `rest` is its path below the top. */
static int show(struct tree *t, int i, const char *point, const char *rest, int nth)
{
	char dest[LIMIT_PATH], stage[32], mask[LIMIT_PATH];
	auto_close int target = FD_NONE, fd = FD_NONE;
	struct stat st;
	int n = snprintf(dest, sizeof dest, "%s%s", t->spec->mounts[i].dest, rest);

	if (n >= (int)sizeof dest)
		return -ENAMETOOLONG;
	target = resolve_open(t->root_fd, dest, O_PATH);
	/* Hidden by another mount, or not reachable. */
	if (target < 0 || stat(point, &st) < 0)
		return 0;
	(void)snprintf(stage, sizeof stage, "%d.ro.%d", i, nth);
	if (S_ISDIR(st.st_mode))
		fd = overlay(t, i, point, mask_of(&t->spec->mounts[i], rest, mask), stage);
	else if (S_ISREG(st.st_mode))
		fd = show_mounted_file(t, i, point, &st, stage);
	else
		return 0;
	return fd < 0 ? fd : mnt_attach(fd, target);
}

int ro_below(struct tree *t, int i)
{
	const struct cell_mount *m = &t->spec->mounts[i];
	auto_done(buf_done) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	char *save = NULL;
	const char *top = shown_path(m);
	size_t n = strlen(top);
	int nth = 0, r = 0;

	if (!t->spec->rootful)
		return 0;
	r = io_read_file(t->proc_fd, "self/mountinfo", &b);
	if (r < 0 || !b.data)
		return fail(t, r < 0 ? r : -ENODATA, top);
	for (char *l = strtok_r(b.data, "\n", &save); l && r == 0;
	     l = strtok_r(NULL, "\n", &save)) {
		struct mount_line line;

		if (!mount_line_cut(l, &line) || strncmp(line.point, top, n) != 0 ||
		    line.point[n] != '/')
			continue;
		r = show(t, i, line.point, line.point + n, nth++);
		if (r < 0)
			(void)fail(t, r, line.point);
	}
	return r;
}
