/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_ns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "sys/ns/mnt.h"
#include "sys/ns/userns.h"
#include "sys/process/raw.h"

enum { RANGE_BASE = 0x70000000 };

static const struct {
	const char *name;
	int flag;
} kinds[PROBE_NS_KINDS] = {
	[PROBE_NS_MNT] = { "mount", CLONE_NEWNS },
	[PROBE_NS_PID] = { "pid", CLONE_NEWPID },
	[PROBE_NS_NET] = { "net", CLONE_NEWNET },
	[PROBE_NS_IPC] = { "ipc", CLONE_NEWIPC },
	[PROBE_NS_UTS] = { "uts", CLONE_NEWUTS },
	[PROBE_NS_CGROUP] = { "cgroup", CLONE_NEWCGROUP },
};

const char *probe_ns_name(enum probe_ns_kind kind)
{
	return kinds[kind].name;
}

static int map_range(int proc)
{
	char text[64];
	int r;

	(void)snprintf(text, sizeof text, "0 %u %u\n", (unsigned)RANGE_BASE, (unsigned)USERNS_IDS);
	r = io_write_file(proc, "uid_map", text);
	return r < 0 ? r : io_write_file(proc, "gid_map", text);
}

static int map_child(pid_t pid, bool rootful)
{
	char path[32];
	auto_close int proc = FD_NONE;

	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	return rootful ? map_range(proc) : userns_map_self(proc, 0, geteuid(), getegid());
}

/* The child in the user namespace. It waits until the maps are written; then it is root. */
static void nest(int told, int *ret)
{
	char go;

	if (read(told, &go, 1) == 1)
		*ret = setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
				       unshare(CLONE_NEWUSER) < 0
			       ? -errno
			       : 0;
	_exit(0);
}

static void try_user(struct probe_ns *f, bool rootful)
{
	struct raw_clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return;
	pid = raw_clone3(&args);
	f->user = pid < 0 ? -errno : 0;
	if (pid == 0) {
		(void)close(sock[0]);
		nest(sock[1], &f->nested);
	}
	(void)close(sock[1]);
	if (pid > 0) {
		f->map = map_child(pid, rootful);
		if (f->map == 0)
			(void)io_write_all(sock[0], "g", 1);
		(void)shutdown(sock[0], SHUT_RDWR);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(sock[0]);
}

/* Needs a child, because only the next process is in the new pid namespace. */
static void try_proc(struct probe_ns *f)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = mnt_new("proc", NULL, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);

		f->proc = fd < 0 ? fd : 0;
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

static void try_others(void *result, const void *arg)
{
	struct probe_ns *f = result;

	if (!*(const bool *)arg && probe_enter_userns(0) < 0)
		return;
	for (int i = 0; i < PROBE_NS_KINDS; i++)
		f->other[i] = unshare(kinds[i].flag) < 0 ? -errno : 0;
	if (f->other[PROBE_NS_MNT] == 0 && f->other[PROBE_NS_PID] == 0 && mnt_make_private() == 0)
		try_proc(f);
}

static void try_user_in_child(void *result, const void *arg)
{
	try_user(result, *(const bool *)arg);
}

void probe_ns(struct probe_ns *ret, bool rootful)
{
	*ret = (struct probe_ns){
		PROBE_UNTRIED, PROBE_UNTRIED, PROBE_UNTRIED, { 0 }, PROBE_UNTRIED
	};
	for (int i = 0; i < PROBE_NS_KINDS; i++)
		ret->other[i] = PROBE_UNTRIED;
	(void)probe_in_child(try_user_in_child, ret, sizeof *ret, &rootful, PROBE_TIMEOUT_MS);
	(void)probe_in_child(try_others, ret, sizeof *ret, &rootful, PROBE_TIMEOUT_MS);
}
