/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/process/raw.h"

enum { HOLD_STACK = 8192 };

static int write_maps(int proc_fd, const struct idmap *map, int n)
{
	char text[256] = "";
	int at = 0, r;

	for (int i = 0; i < n; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%u %u %u\n", map[i].inside,
			       map[i].outside, map[i].count);
	r = io_write_file(proc_fd, "uid_map", text);
	return r < 0 ? r : io_write_file(proc_fd, "gid_map", text);
}

static int map_and_open(pid_t pid, const struct idmap *map, int n)
{
	char path[32];
	auto_close int proc = FD_NONE;
	int fd, r;

	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	r = write_maps(proc, map, n);
	if (r < 0)
		return r;
	fd = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Holds the namespace until it is killed or its parent ends. It runs in the parent's memory at the
 * same time, so it may make only system calls that leave no trace there.
 */
static int hold(void *parent)
{
	if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    syscall(SYS_getppid) != *(pid_t *)parent)
		return 1;
	for (;;)
		(void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

/* Our own child, not yet reaped: the pid cannot belong to another process. */
static void end_holder(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A child that shares our memory: copying it would cost more than everything else. */
static pid_t spawn(int (*run)(void *), int flags, void *arg)
{
	static char stack[HOLD_STACK] __attribute__((aligned(16)));
	pid_t pid = clone(run, stack + sizeof stack, CLONE_VM | flags | SIGCHLD, arg);

	return pid < 0 ? -errno : pid;
}

int userns_new(const struct idmap *map, int n)
{
	static pid_t parent;
	pid_t pid;
	int fd;

	parent = getpid();
	pid = spawn(hold, CLONE_NEWUSER, &parent);
	if (pid < 0)
		return pid;
	fd = map_and_open(pid, map, n);
	end_holder(pid);
	return fd;
}

struct owner {
	pid_t parent;
	uid_t uid;
	int report_fd;
};

/* As another user, but with all capabilities: a host may allow namespaces only for root. */
static int hold_as_owner(void *arg)
{
	struct owner *o = arg;
	int told = 0;

	if (syscall(SYS_prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
	    syscall(SYS_setresuid, -1, o->uid, -1) < 0 || syscall(SYS_unshare, CLONE_NEWUSER) < 0)
		told = -errno;
	if (syscall(SYS_write, o->report_fd, &told, sizeof told) != (long)sizeof told || told < 0)
		return 1;
	return hold(&o->parent);
}

int userns_new_owned(const struct idmap *map, int n, uid_t owner)
{
	static struct owner o;
	auto_close int here = FD_NONE, there = FD_NONE;
	int fds[2], told = -EPIPE, fd;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	here = fds[0];
	there = fds[1];
	o = (struct owner){ getpid(), owner, there };
	pid = spawn(hold_as_owner, 0, &o);
	if (pid < 0)
		return pid;
	fd_close(&there); /* the child has its own descriptor table */
	if (read(here, &told, sizeof told) != (ssize_t)sizeof told)
		told = -EPIPE;
	fd = told < 0 ? told : map_and_open(pid, map, n);
	end_holder(pid);
	return fd;
}

struct bound {
	const char *path, *most;
};

static int write_bounds(int knobs_fd, const struct bound *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = io_write_file(knobs_fd, rows[i].path, rows[i].most);

		if (r < 0)
			return r;
	}
	return 0;
}

int userns_bound_watches(int knobs_fd)
{
	static const struct bound rows[] = { { "user/max_inotify_instances", "64" },
					     { "user/max_inotify_watches", "65536" } };

	return write_bounds(knobs_fd, rows, ARRAY_LEN(rows));
}

int userns_bound_nesting(int knobs_fd)
{
	static const struct bound rows[] = {
		{ "user/max_user_namespaces", "256" },	{ "user/max_net_namespaces", "64" },
		{ "user/max_mnt_namespaces", "512" },	{ "user/max_pid_namespaces", "256" },
		{ "user/max_ipc_namespaces", "256" },	{ "user/max_uts_namespaces", "256" },
		{ "user/max_cgroup_namespaces", "256" }
	};

	return write_bounds(knobs_fd, rows, ARRAY_LEN(rows));
}

int userns_swap(struct idmap map[5], uint32_t base, uint32_t owner, uint32_t user)
{
	uint32_t low = owner < user ? owner : user, high = owner < user ? user : owner;
	int n = 0;

	if (owner == user) {
		map[0] = (struct idmap){ 0, base, USERNS_IDS };
		return 1;
	}
	if (low > 0)
		map[n++] = (struct idmap){ 0, base, low < USERNS_IDS ? low : USERNS_IDS };
	map[n++] = (struct idmap){ owner, base + user, 1 };
	if (owner < USERNS_IDS)
		map[n++] = (struct idmap){ user, base + owner, 1 };
	if (high < USERNS_IDS && high > low + 1)
		map[n++] = (struct idmap){ low + 1, base + low + 1, high - low - 1 };
	else if (high >= USERNS_IDS && low + 1 < USERNS_IDS)
		map[n++] = (struct idmap){ low + 1, base + low + 1, USERNS_IDS - low - 1 };
	if (high < USERNS_IDS - 1)
		map[n++] = (struct idmap){ high + 1, base + high + 1, USERNS_IDS - high - 1 };
	return n;
}

int userns_map_self(int proc_fd, uint32_t inside, uid_t uid, gid_t gid)
{
	char text[64];
	int r = io_write_file(proc_fd, "setgroups", "deny");

	/* An outer namespace may have denied setgroups already. */
	if (r < 0 && r != -EPERM)
		return r;
	(void)snprintf(text, sizeof text, "%u %u 1\n", inside, uid);
	r = io_write_file(proc_fd, "uid_map", text);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof text, "%u %u 1\n", inside, gid);
	return io_write_file(proc_fd, "gid_map", text);
}
