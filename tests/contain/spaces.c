/* SPDX-License-Identifier: Apache-2.0 */
/* New namespaces, and others'. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { NEWTIME = 0x80 };

static int cloned(const struct check *c)
{
	long pid = syscall(SYS_clone, c->a[0] | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return result(pid);
}

static int entered(const struct check *c)
{
	int fd = open(c->path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : result(setns(fd, (int)c->a[0]));
}

/* Into the namespaces of process 1, by its descriptor. */
static int entered_by_pidfd(const struct check *c)
{
	long fd = syscall(SYS_pidfd_open, 1, 0);

	return fd < 0 ? -errno : result(setns((int)fd, (int)c->a[0]));
}

#define UNSHARE(what, flag, where) \
	{ \
		"unshare-" what, "a new namespace: " what, run_call, where, .nr = SYS_unshare, \
									    .a = { flag } \
	}
#define CLONE(what, flag, where) \
	{ \
		"clone-" what, "a process in a new namespace: " what, cloned, where, .a = { flag } \
	}
#define SETNS(what, flag, file) \
	{ \
		"setns-" what, "entering a namespace: " what, entered, NS, \
			.a = { flag }, .path = "/proc/self/ns/" file \
	}

/* clang-format off */
static const struct check checks[] = {
	UNSHARE("user", CLONE_NEWUSER, PLAIN), UNSHARE("mount", CLONE_NEWNS, NS), UNSHARE("net", CLONE_NEWNET, NS),
	UNSHARE("pid", CLONE_NEWPID, NS), UNSHARE("ipc", CLONE_NEWIPC, NS), UNSHARE("uts", CLONE_NEWUTS, NS),
	UNSHARE("cgroup", CLONE_NEWCGROUP, NS), UNSHARE("time", NEWTIME, NS),
	UNSHARE("user-and-net", CLONE_NEWUSER | CLONE_NEWNET, PLAIN),
	CLONE("user", CLONE_NEWUSER, PLAIN), CLONE("mount", CLONE_NEWNS, NS), CLONE("net", CLONE_NEWNET, NS),
	CLONE("pid", CLONE_NEWPID, NS), CLONE("ipc", CLONE_NEWIPC, NS), CLONE("uts", CLONE_NEWUTS, NS),
	CLONE("cgroup", CLONE_NEWCGROUP, NS),
	CLONE("user-and-all", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS, PLAIN),
	CLONE("user-high-bits", CLONE_NEWUSER | 1L << 40, PLAIN),
	SETNS("mount", CLONE_NEWNS, "mnt"), SETNS("net", CLONE_NEWNET, "net"), SETNS("pid", CLONE_NEWPID, "pid"),
	SETNS("ipc", CLONE_NEWIPC, "ipc"), SETNS("uts", CLONE_NEWUTS, "uts"), SETNS("cgroup", CLONE_NEWCGROUP, "cgroup"),
	SETNS("any", 0, "net"),
	{ "setns-user", "entering a namespace: user", entered, NS, .allowed = "EINVAL", .a = { CLONE_NEWUSER }, .path = "/proc/self/ns/user" },
	{ "setns-pidfd", "all namespaces of process 1", entered_by_pidfd, NS, .bare = "EPERM", .a = { CLONE_NEWUTS | CLONE_NEWNET } },
};
/* clang-format on */

const struct topic spaces_topic = { "namespaces", checks, sizeof checks / sizeof checks[0] };
