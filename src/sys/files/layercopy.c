/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/layercopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "sys/files/attrs.h"
#include "sys/files/filecopy.h"
#include "sys/files/twins.h"

enum { DEPTH = LIMIT_TREE_DEPTH };

struct copy {
	int root_fd; /* root of the copy */
	bool privileged;
	bool merges;
	char path[LIMIT_PATH]; /* the directory being made */
	size_t len;
	int depth;
	struct twins twins;
	char *chunk;
};

static void copy_done(struct copy *c)
{
	twins_done(&c->twins);
	free(c->chunk);
	fd_close(&c->root_fd);
}

static void dir_free(DIR *d)
{
	(void)closedir(d);
}
DEFINE_AUTO_PTR(DIR, dir_free)

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int copy_regular(struct copy *c, int dir, const char *name, int to_dir)
{
	auto_close int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_close int to = FD_NONE;
	bool clone = true; /* layers may lie on several file systems */
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = filecopy_data(from, to, st.st_size, c->chunk, &clone);
	return r < 0 ? r : attrs_copy(from, to, c->privileged);
}

static int copy_link(int dir, const char *name, int to_dir)
{
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof target);

	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof target)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int like(const struct copy *c, int dir, const char *name, int to_dir)
{
	auto_close int from = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_close int to = openat(to_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return from < 0 || to < 0 ? -errno : attrs_copy(from, to, c->privileged);
}

/* Copy anything but a directory. */
static int copy_other(struct copy *c, int dir, const char *name, const struct stat *st, int to_dir)
{
	const char *twin =
		st->st_nlink > 1 ? twins_find(&c->twins, st->st_dev, st->st_ino, NULL) : NULL;
	int r;

	if (twin)
		return linkat(c->root_fd, twin, to_dir, name, 0) < 0 ? -errno : 0;
	if (S_ISREG(st->st_mode))
		r = copy_regular(c, dir, name, to_dir);
	else if (S_ISLNK(st->st_mode))
		r = copy_link(dir, name, to_dir);
	else
		r = mknodat(to_dir, name, st->st_mode & (S_IFMT | 07777), st->st_rdev) < 0 ? -errno
											   : 0;
	if (r == 0 && !S_ISREG(st->st_mode))
		r = like(c, dir, name, to_dir);
	/* Overlayfs links all whiteouts of a layer to one inode; a new whiteout means the same. */
	if (r == 0 && st->st_nlink > 1 && !is_whiteout(st))
		r = twins_add(&c->twins, st->st_dev, st->st_ino, c->path, name, 0);
	return r;
}

/* Directories of one name, in the layers from the k-th on, that overlayfs would merge; owned. */
struct seen {
	int fd[LAYERCOPY_MAX];
	int n, m;    /* number of directories to merge; that plus those below */
	bool opaque; /* the merged directories hide everything below them */
};

static void seen_done(struct seen *s)
{
	for (int i = 0; i < s->m; i++)
		fd_close(&s->fd[i]);
}
DEFINE_AUTO(struct seen, seen_done)

static int see(const struct copy *c, const int *from, int n, int m, int k, const char *name,
	       struct seen *ret)
{
	bool end = false;

	for (; k < m && !end; k++) {
		auto_close int fd =
			openat(from[k], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue;
		/* Otherwise it is a whiteout, or a file that the directory replaced. */
		if (fd < 0 && errno != ENOTDIR && errno != ELOOP)
			return -errno;
		end = fd < 0 || attrs_is_opaque(fd, c->privileged);
		ret->opaque |= end && k < n;
		ret->n += fd >= 0 && k < n;
		if (fd >= 0)
			ret->fd[ret->m++] = TAKE_FD(fd);
	}
	return 0;
}

/*
 * The next entry, or NULL at the end. A read failure sets *err, because skipped entries would be
 * lost.
 */
static struct dirent *next_of(DIR *d, int *err)
{
	struct dirent *x = NULL;

	if (*err == 0) {
		errno = 0;
		x = readdir(d);
		*err = x ? 0 : -errno;
	}
	return x;
}

/*
 * The whiteouts have hidden names of the merged layers and are no longer needed. With nothing
 * below, overlayfs would list them.
 */
static int drop_whiteouts(int to)
{
	auto_done(dir_free) DIR *d = NULL;
	int fd = openat(to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	for (struct dirent *x = next_of(d, &r); x && r == 0; x = next_of(d, &r)) {
		struct stat st;

		if (x->d_type == DT_CHR && fstatat(to, x->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    is_whiteout(&st) && unlinkat(to, x->d_name, 0) < 0)
			r = -errno;
	}
	return r;
}

static int merge(struct copy *c, const int *from, int n, int m, int to);

static int fill_dir(struct copy *c, const struct seen *s, int to)
{
	int r;

	c->depth++;
	r = merge(c, s->fd, s->n, s->m, to);
	c->depth--;
	if (r == 0 && c->merges && s->m == s->n)
		r = drop_whiteouts(to);
	if (r == 0 && s->opaque)
		r = attrs_set_opaque(to, c->privileged);
	/* Last, because making entries changes the directory's times. */
	return r < 0 ? r : attrs_copy(s->fd[0], to, c->privileged);
}

static int copy_dir(struct copy *c, const int *from, int n, int m, int k, const char *name,
		    int to_dir)
{
	auto_done(seen_done) struct seen s = { .n = 0 };
	auto_close int to = FD_NONE;
	size_t was = c->len, more = strlen(name) + 1;
	int r = see(c, from, n, m, k, name, &s);

	if (r < 0)
		return r;
	if (s.n == 0 || c->depth == DEPTH || c->len + more >= sizeof c->path)
		return -ELOOP;
	if (mkdirat(to_dir, name, 0700) < 0)
		return -errno;
	to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return -errno;
	c->len += (size_t)snprintf(c->path + c->len, sizeof c->path - c->len, "%s/", name);
	r = fill_dir(c, &s, to);
	c->len = was;
	c->path[was] = '\0';
	return r;
}

static int copy_entry(struct copy *c, const int *from, int n, int m, int k, const char *name,
		      int to)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	/* A higher layer already has it, or removed it. */
	if (k > 0 && fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (fstatat(from[k], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return copy_dir(c, from, n, m, k, name, to);
	return copy_other(c, from[k], name, &st, to);
}

static int merge(struct copy *c, const int *from, int n, int m, int to)
{
	int r = 0;

	for (int k = 0; k < n && r == 0; k++) {
		auto_done(dir_free) DIR *d = NULL;
		int fd = openat(from[k], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		d = fd < 0 ? NULL : fdopendir(fd);
		if (!d) {
			r = -errno;
			fd_close(&fd);
			return r;
		}
		for (struct dirent *x = next_of(d, &r); x && r == 0; x = next_of(d, &r))
			r = copy_entry(c, from, n, m, k, x->d_name, to);
	}
	return r;
}

int layercopy(const int *from, int n, int m, int to_fd, const char *name, bool privileged)
{
	auto_free struct copy *c = calloc(1, sizeof *c);
	int r;

	if (n < 1 || n > m || m > LAYERCOPY_MAX)
		return -EINVAL;
	if (!c)
		return -ENOMEM;
	c->root_fd = FD_NONE;
	c->privileged = privileged;
	c->merges = n > 1;
	c->chunk = malloc(FILECOPY_CHUNK);
	if (c->chunk && mkdirat(to_fd, name, 0700) == 0)
		c->root_fd = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->root_fd < 0) {
		r = c->chunk ? -errno : -ENOMEM;
		copy_done(c);
		return r;
	}
	r = merge(c, from, n, m, c->root_fd);
	if (r == 0)
		r = attrs_copy(from[0], c->root_fd, privileged);
	copy_done(c);
	return r;
}
