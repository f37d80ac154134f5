/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_command.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "t.h"

/* Runs one exec under the filter and returns its notification; then the program continues. */
static void notified(int nr, struct seccomp_notif *n)
{
	struct seccomp_notif_resp r = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	char *argv[] = { "true", NULL };
	int fd, st;
	pid_t pid;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		if (nr == SYS_execve)
			syscall(SYS_execve, "/bin/true", argv, environ);
		else
			syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, environ, 0);
		_exit(1);
	}
	CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, n) == 0);
	r.id = n->id;
	CHECK(n->data.nr == nr && (pid_t)n->pid == pid);
	CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0);
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	close(fd);
}

static void execve_waits_for_the_listener_and_continues(void)
{
	struct seccomp_notif n = { 0 };

	notified(SYS_execve, &n);
}

static void execveat_waits_for_the_listener_and_continues(void)
{
	struct seccomp_notif n = { 0 };

	notified(SYS_execveat, &n);
}

/* All of them, because a program would find the variant that still fails with EXDEV. */
static void every_rename_waits_and_is_done_by_the_kernel(void)
{
	static const long calls[] = {
#ifdef SYS_rename
		SYS_rename,
#endif
		SYS_renameat, SYS_renameat2
	};
	int fd, st;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false);
	CHECK(fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct seccomp_notif n = { 0 };
		struct seccomp_notif_resp r = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		pid_t pid = fork();

		if (pid == 0) {
			(void)syscall(calls[i], -1L, -1L, -1L, -1L, 0L);
			_exit(errno == EFAULT ? 0 : 1);
		}
		CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0 && n.data.nr == calls[i]);
		r.id = n.id;
		CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0);
		CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	}
}

/* Without a listener: refused at once. Before the filter, the kernel's own errors. */
static void commands_make_no_namespaces(void)
{
	static const unsigned long flags[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET,
					       CLONE_NEWUSER | CLONE_NEWPID };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(seccomp_command_install(false, SECCOMP_LISTEN_NONE, false) == 0);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		CHECK(syscall(SYS_unshare, flags[i]) < 0 && errno == EPERM);
		CHECK(syscall(SYS_clone, flags[i] | SIGCHLD, 0L, 0L, 0L, 0L) < 0 && errno == EPERM);
	}
	CHECK(syscall(SYS_unshare, 0x80L /* CLONE_NEWTIME */) < 0 && errno == EPERM);
	CHECK(syscall(SYS_unshare, (long)CLONE_FILES) == 0);
}

static void the_listener_decides_about_user_namespaces(void)
{
	int fd, st;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = seccomp_command_install(false, SECCOMP_LISTEN_FILES, false);
	CHECK(fd >= 0);
	for (int i = 0; i < 2; i++) {
		struct seccomp_notif n = { 0 };
		struct seccomp_notif_resp r = { .error = -ENOTTY };
		pid_t pid = fork();

		if (pid == 0) {
			CHECK(syscall(SYS_unshare, (long)CLONE_NEWNS) < 0 && errno == EPERM);
			st = (int)(i ? syscall(SYS_unshare, (long)CLONE_NEWUSER)
				     : syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | 1L << 40, 0L,
					       0L, 0L, 0L));
			_exit(st < 0 && errno == ENOTTY ? 0 : 1);
		}
		CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0);
		CHECK(n.data.nr == (i ? SYS_unshare : SYS_clone));
		r.id = n.id;
		CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0);
		CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	}
}

static void with_the_trace_of_calls_execs_do_not_wait(void)
{
	struct pollfd p = { .events = POLLIN };
	pid_t pid;
	int st;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	p.fd = seccomp_command_install(false, SECCOMP_LISTEN_FILES, false);
	CHECK(p.fd >= 0);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0 && poll(&p, 1, 0) == 0);
}

static void nothing_else_waits(void)
{
	struct pollfd p = { .events = POLLIN };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	p.fd = seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false);
	CHECK(p.fd >= 0 && getppid() > 0 && poll(&p, 1, 0) == 0);
}

static void a_second_listener_is_refused(void)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false) >= 0);
	CHECK(seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false) == -EBUSY);
}

static void without_the_right_it_is_refused(void)
{
	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(seccomp_command_install(false, SECCOMP_LISTEN_EXECS, false) == -EACCES);
}

static int try(long nr)
{
	errno = 0;
	(void)syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
	return errno;
}

static void refuses(bool locked)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	/* Not refused before, otherwise the test would prove nothing. */
	CHECK(try(SYS_setns) == EBADF && try(SYS_clone3) != ENOSYS && try(SYS_chroot) == EFAULT);
	CHECK(seccomp_command_install(locked, SECCOMP_LISTEN_NONE, false) == 0);
	CHECK(try(SYS_setns) == EPERM && try(SYS_clone3) == ENOSYS && try(SYS_read) == EBADF);
	CHECK(try(SYS_chroot) == (locked ? EPERM : EFAULT));
	CHECK(try(SYS_process_vm_readv) == (locked ? EPERM : EINVAL));
}

static void commands_lose_calls_reserved_for_init(void)
{
	refuses(false);
}

static void locked_commands_lose_more(void)
{
	refuses(true);
	_exit(0); /* the sanitizers' final check needs ptrace */
}

T_MAIN(T(commands_lose_calls_reserved_for_init), T(locked_commands_lose_more),
       T(execve_waits_for_the_listener_and_continues),
       T(execveat_waits_for_the_listener_and_continues),
       T(every_rename_waits_and_is_done_by_the_kernel), T(nothing_else_waits),
       T(commands_make_no_namespaces), T(the_listener_decides_about_user_namespaces),
       T(with_the_trace_of_calls_execs_do_not_wait), T(a_second_listener_is_refused),
       T(without_the_right_it_is_refused))
