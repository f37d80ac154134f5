/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/ns/caps.h"
#include "sys/ns/mnt.h"
#include "sys/ns/userns.h"
#include "sys/process/raw.h"

#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

enum { CANNOT = 125, HIGH = 64, PROGRAM = JAIL_PEER + 1 };

/* A sanitizer's run-time library is shared and writes its reports into files. */
#ifdef CAY_SANITIZED
static const bool keeps_root = true;
#else
static const bool keeps_root = false;
#endif

static int empty_root(void)
{
	static const struct mnt_opt opts[] = { { "mode", "0555" }, { "size", "4k" }, { 0 } };
	auto_close int fd = FD_NONE, at = FD_NONE;
	int r = mnt_make_private();

	if (r < 0)
		return r;
	fd = mnt_new("tmpfs", opts,
		     RAW_ATTR_RDONLY | RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	at = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	r = mnt_attach(fd, at);
	return r < 0 ? r : mnt_pivot(fd);
}

/* These are copies of the warden's descriptors. All other descriptors get closed. */
static int arrange_fds(const struct jail *j, int program)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high_stream = fcntl(j->stream_fd, F_DUPFD_CLOEXEC, HIGH);
	int high_peer = fcntl(j->peer_fd, F_DUPFD_CLOEXEC, HIGH);
	int high_program = fcntl(program, F_DUPFD_CLOEXEC, HIGH);

	if (null < 0 || high_stream < 0 || high_peer < 0 || high_program < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (dup2(high_stream, JAIL_STREAM) < 0 || dup2(high_peer, JAIL_PEER) < 0 ||
	    dup3(high_program, PROGRAM, O_CLOEXEC) < 0)
		return -errno;
	return raw_close_range(PROGRAM + 1, ~0u) < 0 ? -errno : 0;
}

static void __attribute__((noreturn)) child(const struct jail *j, int program, int go)
{
	char *const argv[] = { (char *)j->name, (char *)j->role, NULL };
	char *const envp[] = { NULL };
	sigset_t none;
	char c;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(go, &c, 1) != 1)
		_exit(CANNOT);
	/* May be forbidden, if we have no groups to drop. */
	(void)setgroups(0, NULL);
	if (setresgid(JAIL_UID, JAIL_UID, JAIL_UID) < 0 ||
	    setresuid(JAIL_UID, JAIL_UID, JAIL_UID) < 0)
		_exit(CANNOT);
	if (arrange_fds(j, program) < 0 || (!keeps_root && empty_root() < 0) || setsid() < 0)
		_exit(CANNOT);
	if (caps_bound(0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(CANNOT);
	(void)syscall(SYS_execveat, PROGRAM, "", argv, envp, RAW_AT_EMPTY_PATH);
	_exit(CANNOT);
}

static int map_child(pid_t pid, const struct jail *j)
{
	auto_close int proc = FD_NONE;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return proc < 0 ? -errno : userns_map_self(proc, JAIL_UID, j->uid, j->gid);
}

int jail_start(const struct jail *j, pid_t *ret_pid, int *ret_pidfd)
{
	auto_close int program = open(j->program, O_RDONLY | O_CLOEXEC);
	auto_close int pidfd = FD_NONE;
	const uint64_t network = j->no_network ? CLONE_NEWNET : 0;
	struct raw_clone_args args = { .flags = NAMESPACES | network | RAW_CLONE_PIDFD,
				       .pidfd = (uint64_t)(uintptr_t)&pidfd,
				       .exit_signal = SIGCHLD };
	int go[2], r;
	pid_t pid;

	if (program < 0)
		return -errno;
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = raw_clone3(&args);
	if (pid == 0) {
		(void)close(go[1]);
		child(j, program, go[0]);
	}
	r = pid < 0 ? -errno : map_child(pid, j);
	(void)close(go[0]);
	if (r == 0 && write(go[1], "g", 1) != 1)
		r = -EPIPE;
	(void)close(go[1]);
	if (r < 0) {
		if (pid > 0)
			(void)waitpid(pid, NULL, 0); /* it saw the end of the pipe */
		return r;
	}
	*ret_pid = pid;
	*ret_pidfd = TAKE_FD(pidfd);
	return 0;
}
