/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk with a stack of open directories of fixed height. A directory below that height is first
 * moved up to the top of the tree, where a later pass finds it. So we never build a path and never
 * use `..`, and a deep hostile tree costs one rename per HEIGHT levels.
 *
 * Passes: readdir(3) may miss entries that change during the read. So a directory that is not empty
 * at its end is read again, as long as the last pass removed or moved something. If nothing more
 * can be removed, the walk ends.
 */
#include "sys/files/rmtree.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/random.h"

enum {
	HEIGHT = 32,
	PASSES = 64, /* per directory, in case another process keeps filling it */
};

struct level {
	DIR *dir;
	char name[NAME_MAX + 1];
	bool progress;
	int passes;
};

struct walk {
	int base; /* the directory that holds `name` */
	const char *name;
	int err;
	uint64_t moved; /* number in the name of the next directory to move up */
	int n;
	struct level level[HEIGHT];
};

static void note(struct walk *w, int r)
{
	if (r < 0 && w->err == 0)
		w->err = r;
}

static int open_dir(int dirfd, const char *name, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV,
	};
	long fd = syscall(SYS_openat2, dirfd, name, &how, sizeof how);

	return fd < 0 ? -errno : (int)fd;
}

/* chmod of exactly this directory: fchmod(2) refuses O_PATH, and chmod(2) would follow a link. */
static int make_accessible(int dirfd, const char *name)
{
	auto_close int fd = open_dir(dirfd, name, O_PATH);
	char path[sizeof "/proc/self/fd/" + 11];

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return chmod(path, 0700) < 0 ? -errno : 0;
}

static int open_to_empty(int dirfd, const char *name)
{
	int fd = open_dir(dirfd, name, O_RDONLY);
	struct stat st;

	if (fd == -EACCES && make_accessible(dirfd, name) == 0)
		fd = open_dir(dirfd, name, O_RDONLY);
	/* A readable but unwritable directory opens, but then refuses every unlink. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	return fd;
}

static void push(struct walk *w, int dirfd, const char *name)
{
	struct level *l = &w->level[w->n];
	size_t len = strlen(name);
	int fd = open_to_empty(dirfd, name);

	if (fd < 0) {
		note(w, fd == -ENOENT ? 0 : fd);
		return;
	}
	l->dir = fdopendir(fd);
	if (!l->dir) {
		note(w, -errno);
		(void)close(fd);
		return;
	}
	l->progress = false;
	l->passes = 0;
	/* The caller's name, which may be a path, removes the lowest level. */
	if (w->n > 0)
		memcpy(l->name, name, len + 1);
	w->n++;
}

static int move_up(struct walk *w, int from, const char *name)
{
	int top = dirfd(w->level[0].dir);
	char to[sizeof ".rm-" + 16];

	(void)snprintf(to, sizeof to, ".rm-%016" PRIx64, w->moved++);
	if (renameat(from, name, top, to) == 0)
		return 0;
	/* A directory must be writable itself to move to another parent. */
	if (errno != EACCES || make_accessible(from, name) < 0)
		return -errno;
	return renameat(from, name, top, to) < 0 ? -errno : 0;
}

/* 1: removed. 0: a directory that is not empty. Else -errno. */
static int remove_one(int dirfd, const char *name, bool maybe_dir)
{
	if (!maybe_dir) {
		if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
			return 1;
		/* For directories POSIX has EPERM, Linux EISDIR. */
		if (errno != EISDIR && errno != EPERM)
			return -errno;
	}
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 1;
	if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY)
		return 0;
	return errno == ENOTDIR ? -EPERM : -errno;
}

static void visit(struct walk *w, struct level *l, const struct dirent *d)
{
	int r = remove_one(dirfd(l->dir), d->d_name, d->d_type == DT_DIR);

	if (r != 0) {
		l->progress |= r > 0;
		note(w, r);
		return;
	}
	if (w->n < HEIGHT) {
		push(w, dirfd(l->dir), d->d_name);
		return;
	}
	r = move_up(w, dirfd(l->dir), d->d_name);
	note(w, r);
	l->progress |= r == 0;
	w->level[0].progress |= r == 0;
	if (r == 0)
		w->level[0].passes = 0;
}

/* At the end of a directory: remove it, or read it again. */
static void leave(struct walk *w, struct level *l)
{
	bool lowest = w->n == 1;
	int parent = lowest ? w->base : dirfd(w->level[w->n - 2].dir);
	int r = unlinkat(parent, lowest ? w->name : l->name, AT_REMOVEDIR) < 0 ? -errno : 0;

	if ((r == -ENOTEMPTY || r == -EEXIST) && l->progress && l->passes < PASSES) {
		l->progress = false;
		l->passes++;
		rewinddir(l->dir);
		return;
	}
	(void)closedir(l->dir);
	w->n--;
	note(w, r == -ENOENT ? 0 : r);
	if (r == 0 && w->n > 0)
		w->level[w->n - 1].progress = true;
}

int rmtree_at(int dirfd, const char *name)
{
	struct walk w;
	int r = remove_one(dirfd, name, false);

	if (r != 0)
		return r < 0 ? r : 0;
	w.base = dirfd;
	w.name = name;
	w.err = 0;
	w.n = 0;
	r = random_bytes(&w.moved, sizeof w.moved);
	if (r < 0)
		return r;
	push(&w, dirfd, name);
	while (w.n > 0) {
		struct level *l = &w.level[w.n - 1];
		struct dirent *d;

		errno = 0;
		d = readdir(l->dir);
		if (!d) {
			note(&w, -errno);
			leave(&w, l);
		} else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
			visit(&w, l, d);
		}
	}
	return w.err;
}
