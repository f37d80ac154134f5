/* SPDX-License-Identifier: Apache-2.0 */
#include "init/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "init/caller.h"
#include "init/pure.h"
#include "sys/process/raw.h"
#include "wire/proto.h"

enum { SECONDS = 50, PARENTS = 4096 };

/* One side of the rename. */
struct side {
	int parent; /* O_PATH */
	char name[256];
};

static int take_path(struct move_order *o, int *n, struct str value)
{
	if (*n == 2 || !str_is_text(value) || !str_copy(o->path[*n], LIMIT_PATH, value))
		return -EBADMSG;
	++*n;
	return 0;
}

static int take_number(struct move_order *o, int *ndirs, struct field f)
{
	uint64_t v;

	if (field_u64(f, &v) < 0)
		return -EBADMSG;
	if (f.tag == TAG_PID)
		o->tid = (int)v;
	else if (f.tag == TAG_FLAGS)
		o->flags = (unsigned)v;
	else if (*ndirs < 2)
		o->dirfd[(*ndirs)++] = (int)v;
	else
		return -EBADMSG;
	return 0;
}

int move_order_parse(struct move_order *o, struct str body)
{
	int npaths = 0, ndirs = 0, r;
	struct field f;

	o->tid = 0;
	o->flags = 0;
	while ((r = field_next(&body, &f)) > 0) {
		r = 0;
		if (f.tag == TAG_PATH)
			r = take_path(o, &npaths, f.value);
		else if (f.tag == TAG_PID || f.tag == TAG_FLAGS || f.tag == TAG_DIRFD)
			r = take_number(o, &ndirs, f);
		if (r < 0)
			return r;
	}
	return r == 0 && npaths == 2 && ndirs == 2 && o->tid > 0 ? 0 : -EBADMSG;
}

/* Split the path into its directory, opened, and the last name. */
static int open_side(int base, const char *path, struct side *s)
{
	char dir[LIMIT_PATH];
	size_t n = strlen(path), cut;

	while (n > 1 && path[n - 1] == '/')
		n--;
	for (cut = n; cut > 0 && path[cut - 1] != '/'; cut--)
		;
	if (n == cut || !str_copy(s->name, sizeof s->name, (struct str){ path + cut, n - cut }))
		return -ENAMETOOLONG;
	if (dir_is_dots(s->name))
		return -EBUSY;
	(void)str_copy(dir, sizeof dir, cut ? (struct str){ path, cut } : STR("."));
	s->parent = openat(base, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->parent < 0 ||
	    syscall(SYS_faccessat2, s->parent, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int open_as(const struct move_order *o, const struct caller *c, struct side side[2])
{
	auto_close int from = caller_dir(o->tid, o->dirfd[0]);
	auto_close int to = caller_dir(o->tid, o->dirfd[1]);
	int r;

	if (from < 0 || to < 0)
		return from < 0 ? from : to;
	r = caller_root(o->tid);
	if (r == 0)
		r = caller_become(c);
	if (r == 0)
		r = open_side(from, o->path[0], &side[0]);
	return r < 0 ? r : open_side(to, o->path[1], &side[1]);
}

/* The work is done in our own root: names in /proc must not lead where the caller wants. */
static int open_sides(const struct move_order *o, struct side side[2])
{
	struct caller c;
	int r = caller_open(o->tid, &c), back;

	if (r < 0)
		return r;
	r = open_as(o, &c, side);
	back = caller_leave(&c);
	return r < 0 ? r : back;
}

/* The kernel would return EINVAL: the target is below the directory to be moved. */
static bool is_beneath(int dir, int parent, const char *name)
{
	auto_close int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat top, st, last = { 0 };

	if (fstatat(parent, name, &top, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (int i = 0; i < PARENTS && at >= 0 && fstat(at, &st) == 0; i++) {
		int up;

		if (st.st_ino == top.st_ino && st.st_dev == top.st_dev)
			return true;
		if (i && st.st_ino == last.st_ino && st.st_dev == last.st_dev)
			return false;
		last = st;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&at);
		at = up;
	}
	return false;
}

/* Skip the work if the kernel will refuse the rename anyway. */
static int check_sides(const struct move_order *o, const struct side side[2], uint64_t *ret_mount)
{
	uint64_t other;
	struct stat st;
	int r = pure_mount_of(side[0].parent, ret_mount);

	if (r == 0)
		r = pure_mount_of(side[1].parent, &other);
	if (r < 0)
		return r;
	if (other != *ret_mount)
		return -EXDEV;
	if (is_beneath(side[1].parent, side[0].parent, side[0].name))
		return -EINVAL;
	if (o->flags & RAW_RENAME_EXCHANGE)
		return is_beneath(side[0].parent, side[1].parent, side[1].name) ? -EINVAL : 0;
	if (fstatat(side[1].parent, side[1].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return dir_is_empty(side[1].parent, side[1].name) ? 0 : -ENOTEMPTY;
}

/* An exchange needs both sides pure; a plain rename only the first. */
static int work(const struct move_order *o, struct pure *p, const struct side side[2])
{
	for (int i = 0; i < (o->flags & RAW_RENAME_EXCHANGE ? 2 : 1); i++) {
		struct stat st;
		int r;

		if (fstatat(side[i].parent, side[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		r = S_ISDIR(st.st_mode) ? pure_make(p, side[i].parent, side[i].name) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The second process shares our descriptors, so that we can undo its unfinished work. */
static int work_in_child(const struct move_order *o, struct pure *p, const struct side side[2])
{
	struct raw_clone_args args = { .flags = CLONE_FILES, .exit_signal = SIGCHLD };
	pid_t pid = raw_clone3(&args);
	int status, r;

	if (pid == 0)
		_exit(-work(o, p, side));
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	r = pure_undo(p->half, p->stage);
	return r < 0 ? r : WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

int mover_open_stage(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return fd;
	(void)close(fd);
	return -EBUSY;
}

static int prepare(const struct move_order *o, const struct side side[2], uint64_t mount)
{
	struct pure p = { .mount = mount,
			  .left = PURE_ENTRIES,
			  .caller = o->tid,
			  .deadline_ns = clock_mono_ns() + SECONDS * NS_PER_S };
	auto_close int stage = FD_NONE;
	char name[32];
	int r;

	p.half = mmap(NULL, sizeof *p.half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (p.half == MAP_FAILED)
		return -errno;
	(void)snprintf(name, sizeof name, ".cay-mv.%d", getpid());
	if (mkdirat(side[0].parent, name, 0700) < 0)
		return -errno;
	stage = mover_open_stage(side[0].parent, name);
	if (stage < 0)
		return stage;
	/* New entries must not inherit more rights than the replaced directory gives. */
	(void)fremovexattr(stage, "system.posix_acl_default");
	p.stage = stage;
	r = pure_stage(stage);
	if (r == 0)
		r = work_in_child(o, &p, side);
	pure_unstage(stage);
	(void)unlinkat(side[0].parent, name, AT_REMOVEDIR);
	return r;
}

void mover_run(const struct move_order *o)
{
	struct side side[2] = { { .parent = FD_NONE }, { .parent = FD_NONE } };
	uint64_t mount = 0;
	int r;

	(void)raw_close_range(3, ~0u); /* init's descriptors */
	(void)umask(0);
	r = open_sides(o, side);
	if (r == 0)
		r = check_sides(o, side, &mount);
	if (r == 0)
		r = prepare(o, side, mount);
	_exit(-r);
}
