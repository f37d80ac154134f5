/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one call after the other that a sandbox must refuse, each with arguments that do no
 * harm where it is not refused, and prints `name error` for each; error 0: it worked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void say(const char *name, long r)
{
	printf("%s %d\n", name, r < 0 ? errno : 0);
	fflush(stdout);
}

/* Wrong arguments everywhere: what reaches the kernel fails there with something else. */
#define WRONG(name) say(#name, syscall(SYS_##name, -1L, -1L, -1L, -1L, -1L, -1L))

static void numbers(void)
{
	WRONG(io_uring_setup), WRONG(io_uring_enter), WRONG(io_uring_register);
	WRONG(bpf), WRONG(perf_event_open), WRONG(userfaultfd);
	WRONG(add_key), WRONG(request_key), WRONG(keyctl);
	WRONG(open_by_handle_at), WRONG(mount), WRONG(umount2), WRONG(pivot_root);
	WRONG(fsopen), WRONG(fsconfig), WRONG(fsmount), WRONG(fspick), WRONG(move_mount);
	WRONG(open_tree), WRONG(mount_setattr), WRONG(setns);
	WRONG(kexec_load), WRONG(kexec_file_load), WRONG(init_module), WRONG(finit_module);
	WRONG(delete_module), WRONG(swapon), WRONG(swapoff), WRONG(reboot), WRONG(acct);
	WRONG(quotactl), WRONG(syslog), WRONG(iopl), WRONG(ioperm), WRONG(modify_ldt);
	WRONG(adjtimex), WRONG(clock_settime), WRONG(settimeofday), WRONG(lookup_dcookie);
	WRONG(nfsservctl), WRONG(fanotify_init), WRONG(chroot), WRONG(process_vm_readv);
	WRONG(pidfd_getfd), WRONG(clone3);
	say("unknown", syscall(500));
	say("x32", syscall(SYS_getpid | 0x40000000));
}

static void families(void)
{
	static const int refused[] = { 0,  3,  4,  5,  9,  11, 15, 17, 19, 20, 21, 26,
				       29, 30, 31, 33, 38, 39, 40, 41, 43, 44, 45 };
	char name[32];

	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		snprintf(name, sizeof name, "family-%d", refused[i]);
		say(name, socket(refused[i], SOCK_DGRAM, 0));
	}
	say("mptcp", socket(AF_INET, SOCK_STREAM, 262));
	say("sctp", socket(AF_INET6, SOCK_STREAM, 132));
	say("udplite", socket(AF_INET, SOCK_DGRAM, 136));
	say("raw", socket(AF_INET, SOCK_RAW, 6));
	say("packet-type", socket(AF_INET, SOCK_PACKET, 768));
	say("netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
	say("xfrm", socket(AF_NETLINK, SOCK_RAW, 6));
	say("sock-diag", socket(AF_NETLINK, SOCK_RAW, 4));
	say("generic-netlink", socket(AF_NETLINK, SOCK_RAW, 16));
	say("audit", socket(AF_NETLINK, SOCK_RAW, 9));
	say("pair-inet", socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){ 0 }));
	say("ok-unix", socket(AF_UNIX, SOCK_STREAM, 0));
	say("ok-tcp", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 6));
	say("ok-udp6", socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	say("ok-route", socket(AF_NETLINK, SOCK_RAW, 0));
}

static long clone_with(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static void namespaces(void)
{
	say("clone-user", clone_with(CLONE_NEWUSER));
	say("clone-net", clone_with(CLONE_NEWUSER | CLONE_NEWNET));
	say("ok-clone", clone_with(0));
	say("ok-unshare-files", unshare(CLONE_FILES));
	/* Last: in a user namespace without a map not much else would work. */
	say("unshare-user", unshare(CLONE_NEWUSER));
	say("unshare-time", unshare(0x80));
}

static void terminal(void)
{
	int master = posix_openpt(O_RDWR), slave;

	grantpt(master);
	unlockpt(master);
	/* Becomes our terminal where we have none: then TIOCSTI is no matter of rights. */
	slave = open(ptsname(master), O_RDWR);
	say("tiocsti", ioctl(slave, TIOCSTI, "x"));
	say("tiocsti-high", syscall(SYS_ioctl, (long)slave, 0x100000000L | TIOCSTI, "x"));
	say("tioclinux", ioctl(slave, TIOCLINUX, "\2"));
	say("ok-winsize", ioctl(slave, TIOCGWINSZ, &(struct winsize){ 0 }));
}

static void oneself(void)
{
	pid_t pid;
	int st;

	say("set-mm", prctl(PR_SET_MM, -1, -1, -1, -1));
	say("ok-name", prctl(PR_SET_NAME, "probe"));
	say("ok-subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1));
	say("read-implies-exec", personality(READ_IMPLIES_EXEC));
	say("ok-no-random", personality(ADDR_NO_RANDOMIZE));
	pid = fork();
	if (pid == 0) {
		errno = 0;
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 ? errno : 0);
	}
	waitpid(pid, &st, 0);
	errno = WEXITSTATUS(st);
	say("traceme", errno ? -1 : 0);
	pid = fork();
	if (pid == 0) {
		long r = 20;

		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	waitpid(pid, &st, 0);
	printf("int80 %d\n", WIFSIGNALED(st) ? WTERMSIG(st) : 0);
}

int main(void)
{
	if (getsid(0) != getpid())
		(void)setsid();
	numbers();
	families();
	terminal();
	oneself();
	namespaces();
	return 0;
}
