/* SPDX-License-Identifier: Apache-2.0 */
#include "init/pure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "sys/files/attrs.h"
#include "sys/process/raw.h"

enum {
	DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	COPY_UP = O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
	TRIES = 8, /* for a directory in which new entries keep appearing */
};

/* One directory on the way down. */
struct level {
	int parent, depth;
	const char *name;
};

int pure_mount_of(int fd, uint64_t *ret)
{
	struct statx x = { 0 };

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0)
		return -errno;
	*ret = x.stx_mnt_id;
	return x.stx_mask & STATX_MNT_ID ? 0 : -ENOSYS;
}

int pure_stage(int stage)
{
	auto_close int e = FD_NONE;

	if (mkdirat(stage, "e", 0700) < 0)
		return -errno;
	e = openat(stage, "e", DIRECTORY);
	return e < 0 || mkdirat(e, "e", 0700) < 0 ? -errno : 0;
}

void pure_unstage(int stage)
{
	(void)unlinkat(stage, "e/e", AT_REMOVEDIR);
	(void)unlinkat(stage, "e", AT_REMOVEDIR);
}

/*
 * Overlayfs checks EXDEV before ENOTEMPTY, so a rename onto a directory that is not empty is a test
 * without effect. 1: pure; 0: not pure; -errno.
 */
static int is_pure(const struct pure *p, int parent, const char *name)
{
	if (renameat(parent, name, p->stage, "e") == 0) /* another process has emptied "e" */
		return renameat(p->stage, "e", parent, name) < 0 ? -errno : 1;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 1;
	return errno == EXDEV ? 0 : -errno;
}

static int may_go_on(struct pure *p)
{
	if (p->left == 0)
		return -E2BIG;
	p->left--;
	if (kill(p->caller, 0) < 0 && errno == ESRCH)
		return -ESRCH;
	return clock_mono_ns() > p->deadline_ns ? -ETIME : 0;
}

static int make_level(struct pure *p, const struct level *at);

/* A running file (ETXTBSY) is copied up by the rename instead. */
static int copy_up(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, COPY_UP);

	return fd >= 0 || errno == ETXTBSY || errno == ENOENT ? 0 : -errno;
}

static int prepare_entry(struct pure *p, int dir, const char *name, int depth)
{
	struct stat st;
	int r = may_go_on(p);

	if (r < 0)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return make_level(p, &(struct level){ dir, depth + 1, name });
	return S_ISREG(st.st_mode) ? copy_up(dir, name) : 0;
}

/* Step 1. */
static int prepare_entries(struct pure *p, int dir, int depth)
{
	auto_done(dir_free) DIR *d = dir_open_at(dir, ".");
	int r = d ? 0 : -errno;

	for (const struct dirent *x = d ? readdir(d) : NULL; x && r == 0; x = readdir(d))
		if (!dir_is_dots(x->d_name))
			r = prepare_entry(p, dir, x->d_name, depth);
	return r;
}

/* Move one entry; with NOREPLACE, a newer entry of that name stays. */
static int move_entry(int from, int to, const char *name, unsigned flags)
{
	if (raw_renameat2(from, name, to, name, flags) == 0 || errno == ENOENT)
		return 0;
	if (errno == EEXIST && unlinkat(from, name, 0) == 0)
		return 0;
	return -errno;
}

static int move_entries(int from, int to, unsigned flags)
{
	auto_done(dir_free) DIR *d = dir_open_at(from, ".");
	int r = d ? 0 : -errno;

	for (const struct dirent *x = d ? readdir(d) : NULL; x && r == 0; x = readdir(d))
		if (!dir_is_dots(x->d_name))
			r = move_entry(from, to, x->d_name, flags);
	return r;
}

/* Close the directory to all processes but us: needs CAP_DAC_OVERRIDE over its owner. */
static int close_door(int dir)
{
	if (fchmod(dir, 0) < 0)
		return -errno;
	/* Without AT_EACCESS the kernel would check without our capabilities. */
	return syscall(SYS_faccessat2, dir, ".", F_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int set_times(int dir, const struct stat *st)
{
	return futimens(dir, (struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno : 0;
}

int pure_undo(struct pure_half *h, int stage)
{
	int r;

	if (!h->open)
		return 0;
	r = move_entries(h->to, h->from, RAW_RENAME_NOREPLACE);
	if (fchmod(h->from, h->was.st_mode & 07777) < 0 && r == 0)
		r = -errno;
	(void)set_times(h->from, &h->was);
	if (r == 0 && unlinkat(stage, h->name, AT_REMOVEDIR) < 0)
		r = -errno;
	h->open = false;
	return r;
}

static int move_and_replace(struct pure *p, const struct level *at, const struct pure_half *h)
{
	int r = attrs_copy(h->from, h->to, true);

	if (r == 0)
		r = close_door(h->from);
	for (int i = 0; r == 0 && i < TRIES; i++) {
		r = move_entries(h->from, h->to, 0);
		if (r == 0)
			r = set_times(h->to, &h->was);
		if (r == 0 && renameat(p->stage, h->name, at->parent, at->name) == 0)
			return 0;
		if (r == 0 && errno != ENOTEMPTY && errno != EEXIST)
			r = -errno;
	}
	return r < 0 ? r : -EBUSY;
}

/* Step 2. */
static int replace(struct pure *p, const struct level *at, int dir, const struct stat *was)
{
	struct pure_half *h = p->half;
	auto_close int to = FD_NONE;
	int r;

	(void)snprintf(h->name, sizeof h->name, "%d", at->depth);
	if (mkdirat(p->stage, h->name, 0700) < 0)
		return -errno;
	to = openat(p->stage, h->name, DIRECTORY);
	if (to < 0)
		return -errno;
	h->from = dir;
	h->to = to;
	h->was = *was;
	h->open = true;
	r = move_and_replace(p, at, h);
	if (r < 0)
		(void)pure_undo(h, p->stage);
	h->open = false;
	return r;
}

static int make_level(struct pure *p, const struct level *at)
{
	auto_close int dir = FD_NONE;
	uint64_t mount;
	struct stat was;
	int r = is_pure(p, at->parent, at->name);

	if (r != 0)
		return r < 0 ? r : 0;
	if (at->depth > PURE_DEPTH)
		return -ELOOP;
	dir = openat(at->parent, at->name, DIRECTORY);
	if (dir < 0 || fstat(dir, &was) < 0)
		return -errno;
	r = pure_mount_of(dir, &mount);
	if (r == 0 && mount != p->mount)
		r = -EBUSY;
	if (r == 0)
		r = prepare_entries(p, dir, at->depth);
	if (r == 0)
		return replace(p, at, dir, &was);
	(void)set_times(dir, &was); /* directories in it may have been replaced */
	return r;
}

int pure_make(struct pure *p, int parent, const char *name)
{
	return make_level(p, &(struct level){ parent, 0, name });
}
