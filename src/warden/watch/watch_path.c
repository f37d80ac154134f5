/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predict which file an exec will run, and find which file a process runs. For a missing program
 * the caller answers the task with the error: the exec must not continue, because the program could
 * appear meanwhile. Files are opened only with O_PATH: no device, pipe or file system of the
 * sandbox is touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/watch/watch_exec.h"

#ifndef AT_EXECVE_CHECK /* Linux 6.14: only checks whether an exec would succeed */
#define AT_EXECVE_CHECK 0x10000
#endif

enum { TRIES = 8 };

/* A race with a rename gives EAGAIN: retry. */
static int open_in(int root_fd, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

static bool is_absent(int err)
{
	return err == -ENOENT || err == -ENOTDIR;
}

/*
 * True if the first unresolvable component is really missing. It may also be a link such as
 * /proc/self, which leads nowhere for us but somewhere for the task.
 */
static bool surely_absent(int root_fd, const char *path)
{
	char dir[LIMIT_PATH];
	struct stat st;
	char *slash;

	if (!str_copy(dir, sizeof dir, str_of(path)))
		return true;
	while ((slash = strrchr(dir, '/'))) {
		auto_close int fd = FD_NONE;

		*slash = '\0';
		fd = open_in(root_fd, slash == dir ? "/" : dir, O_DIRECTORY);
		if (fd >= 0)
			return fstatat(fd, slash + 1, &st, AT_SYMLINK_NOFOLLOW) < 0
				       ? is_absent(-errno)
				       : !S_ISLNK(st.st_mode);
		if (!is_absent(fd))
			return false;
	}
	return true;
}

static int open_proc(int tid, const char *what)
{
	char link[64];
	int fd;

	(void)snprintf(link, sizeof link, "/proc/%d/%s", tid, what);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_link(const char *link, struct str prefix, char name[LIMIT_PATH])
{
	ssize_t n = readlink(link, name, LIMIT_PATH);

	if (n < 0)
		return -errno;
	if (n == LIMIT_PATH)
		return -ENAMETOOLONG;
	name[n] = '\0';
	if (prefix.n && str_starts((struct str){ name, (size_t)n }, prefix) &&
	    (name[prefix.n] == '/' || name[prefix.n] == '\0'))
		memmove(name, name + prefix.n, (size_t)n - prefix.n + 1);
	if (name[0] == '\0')
		memcpy(name, "/", 2);
	return 0;
}

int exec_name(int fd, struct str prefix, char name[LIMIT_PATH])
{
	char link[64];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	return read_link(link, prefix, name);
}

/* Prefix the path with the directory that it is relative to. */
static int make_absolute(const struct exec_req *q, struct str prefix, char path[LIMIT_PATH])
{
	static const struct str deleted = STR(" (deleted)");
	char link[64], full[LIMIT_PATH];
	struct str base;
	int r;

	if (q->dirfd == AT_FDCWD)
		(void)snprintf(link, sizeof link, "/proc/%d/cwd", q->tid);
	else
		(void)snprintf(link, sizeof link, "/proc/%d/fd/%d", q->tid, q->dirfd);
	r = read_link(link, prefix, full);
	if (r < 0)
		return r;
	base = str_of(full);
	if (full[0] != '/' ||
	    (base.n >= deleted.n && memcmp(full + base.n - deleted.n, deleted.p, deleted.n) == 0))
		return -ESTALE;
	r = snprintf(full + base.n, sizeof full - base.n, "/%s", path);
	if (r < 0 || (size_t)r >= sizeof full - base.n)
		return -ENAMETOOLONG;
	memcpy(path, full, base.n + (size_t)r + 1);
	return 0;
}

/* A link to the task's own program, by which programs run themselves again; else NULL. */
static const char *own_link(const char *path)
{
	static const char self[] = "/proc/self/", fd[] = "fd/";
	const char *what = path + strlen(self);

	if (strncmp(path, self, strlen(self)) != 0)
		return NULL;
	if (strcmp(what, "exe") == 0)
		return what;
	if (strncmp(what, fd, strlen(fd)) == 0 && what[3] &&
	    strspn(what + 3, "0123456789") == strlen(what + 3) && strlen(what) < 16)
		return what;
	return NULL;
}

/* In the sandbox's root; if it is missing there, in the task's own root, which may differ. */
static int open_program(int root_fd, const struct exec_req *q, const char *path)
{
	auto_close int own_root = FD_NONE;
	int fd;

	if (own_link(path))
		return open_proc(q->tid, own_link(path));
	fd = open_in(root_fd, path, 0);
	if (!is_absent(fd))
		return fd;
	own_root = open_proc(q->tid, "root");
	if (own_root >= 0)
		fd = open_in(own_root, path, 0);
	if (!is_absent(fd))
		return fd;
	return surely_absent(own_root >= 0 ? own_root : root_fd, path) ? fd : -ELOOP;
}

/* Takes fd. */
static int check_program(int fd, int *ret_fd)
{
	auto_close int own = fd;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return -EACCES;
	*ret_fd = TAKE_FD(own);
	return 0;
}

bool exec_only_asks(const struct exec_req *q)
{
	return q->flags & AT_EXECVE_CHECK;
}

int exec_find(int root_fd, struct str prefix, const struct exec_req *q, char path[LIMIT_PATH],
	      int *ret_fd)
{
	char link[32];
	int fd = 0;

	*ret_fd = FD_NONE;
	if (path[0] == '\0') {
		if (!(q->flags & AT_EMPTY_PATH))
			return -ENOENT;
		if (q->dirfd < 0)
			return q->dirfd == AT_FDCWD ? -EACCES : -EBADF;
		(void)snprintf(link, sizeof link, "fd/%d", q->dirfd);
		fd = open_proc(q->tid, link);
	} else {
		if (path[0] != '/')
			fd = make_absolute(q, prefix, path);
		if (fd == 0)
			fd = open_program(root_fd, q, path);
	}
	if (fd < 0)
		return is_absent(fd) ? fd : 0;
	return check_program(fd, ret_fd);
}

/* Most tasks have the sandbox's own root. Its name shows that, which is cheaper than opening it. */
static int own_root(int tid, struct str prefix, char name[LIMIT_PATH], int *ret_fd)
{
	char link[32];
	int r;

	(void)snprintf(link, sizeof link, "/proc/%d/root", tid);
	r = read_link(link, STR_NONE, name);
	if (r < 0)
		return r;
	if (strcmp(name, "/") == 0)
		name[0] = '\0';
	if (str_eq(str_of(name), prefix))
		return 0;
	*ret_fd = open_proc(tid, "root");
	return *ret_fd < 0 ? *ret_fd : 0;
}

int exec_open(int root_fd, struct str prefix, int tid, int dirfd, const char *given)
{
	struct exec_req q = { .tid = tid, .dirfd = dirfd };
	char path[LIMIT_PATH], root[LIMIT_PATH];
	auto_close int own = FD_NONE;
	size_t n = strlen(given);
	int r;

	while (n > 1 && given[n - 1] == '/')
		n--;
	if (n == 0 || !str_copy(path, sizeof path, (struct str){ given, n }))
		return -ENOENT;
	r = own_root(tid, prefix, root, &own);
	if (r == 0 && path[0] != '/')
		r = make_absolute(&q, str_of(root), path);
	return r < 0 ? r : open_in(own >= 0 ? own : root_fd, path, O_NOFOLLOW);
}

int exec_program(int pid, struct str prefix, char name[LIMIT_PATH])
{
	char link[32];
	int r;

	(void)snprintf(link, sizeof link, "/proc/%d/exe", pid);
	r = read_link(link, prefix, name);
	if (r < 0)
		name[0] = '\0';
	return r;
}
