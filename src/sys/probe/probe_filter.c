/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sys/process/fdpass.h"
#include "sys/process/raw.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

enum { ANSWER = 4711, STATUS = 7, LANDLOCK_VERSION = 1 };

/* getppid waits for the listener; every other system call passes. */
static int install(unsigned long more)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER | more, &prog);

	return fd < 0 ? -errno : (int)fd;
}

/* The watched process: sends its listener to the watcher, then makes the system call. */
static void be_watched(struct probe_filter *f, int sock)
{
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(1);
	fd = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	f->killable = fd >= 0;
	if (fd == -EINVAL)
		fd = install(0);
	if (fd < 0)
		f->notify = fd;
	else if (fdpass_send(sock, "l", 1, &fd, 1) == 0)
		f->notify = syscall(SYS_getppid) == ANSWER ? 0 : -EIO;
	_exit(0);
}

static void answer(int sock)
{
	struct seccomp_notif ask = { 0 };
	struct seccomp_notif_resp resp = { .val = ANSWER };
	int fd = FD_NONE, n = 0;
	char c;

	if (fdpass_recv(sock, &c, 1, &fd, 1, &n) < 0 || n != 1)
		return;
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &ask) == 0) {
		resp.id = ask.id;
		(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
	fd_close(&fd);
}

static void try_notify(void *result, const void *arg)
{
	int sock[2];
	pid_t pid;

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_watched(result, sock[1]);
	}
	(void)close(sock[1]);
	if (pid > 0) {
		answer(sock[0]);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* As in Linux 6.15; the kernel accepts any size from 64 bytes. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
#define PIDFD_INFO	 _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT_ (1ull << 3)

static void try_pidfd(struct probe_filter *f)
{
	struct pidfd_info info = { .mask = PIDFD_INFO_EXIT_ };
	auto_close int fd = FD_NONE;
	pid_t pid = fork();

	if (pid == 0)
		_exit(STATUS);
	if (pid < 0)
		return;
	fd = raw_pidfd_open(pid);
	f->pidfd = fd < 0 ? -errno : 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (fd < 0)
		return;
	if (ioctl(fd, PIDFD_INFO, &info) < 0)
		f->pidfd_exit = -errno;
	else
		f->pidfd_exit = info.mask & PIDFD_INFO_EXIT_ && info.exit_code == STATUS << 8
					? 0
					: -EOPNOTSUPP;
}

void probe_filter(struct probe_filter *ret)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	*ret = (struct probe_filter){ .notify = PROBE_UNTRIED,
				      .landlock = abi < 0 ? -errno : (int)abi,
				      .pidfd = PROBE_UNTRIED,
				      .pidfd_exit = PROBE_UNTRIED };
	(void)probe_in_child(try_notify, ret, sizeof *ret, NULL, PROBE_TIMEOUT_MS);
	try_pidfd(ret);
}
