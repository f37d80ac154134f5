/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_list.h"

#include <linux/netlink.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* Newer than the headers of one of our C libraries; the same on every architecture. */
enum {
	NR_quotactl_fd = 443,
	NR_memfd_secret = 447,
	NR_process_mrelease = 448,
	NR_futex_waitv = 449,
	NR_cachestat = 451,
	NR_fchmodat2 = 452,
	NR_map_shadow_stack = 453,
	NR_futex_wake = 454,
	NR_futex_wait = 455,
	NR_futex_requeue = 456,
	NR_mseal = 462,
	NR_setxattrat = 463,
	NR_getxattrat = 464,
	NR_listxattrat = 465,
	NR_removexattrat = 466,
	NR_open_tree_attr = 467,
	NR_file_getattr = 468,
	NR_file_setattr = 469,
	/* where the kernel's uprobe trampolines enter, on x86-64 only */
	NR_uretprobe = 335,
	NR_uprobe = 336,
};

/* Newer than the headers, as above. */
enum {
	OPT_MEMORY_MERGE_SET = 67,
	OPT_MEMORY_MERGE_GET = 68,
	OPT_AUXV = 0x41555856,
	OPT_VMA_NAME = 0x53564d41,
	OPT_PTRACER = 0x59616d61,
	OPT_MDWE_SET = 65,
	OPT_MDWE_GET = 66,
};

enum {
	NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
			 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
	NEW_TIME = 0x80, /* CLONE_NEWTIME; in clone these bits are the signal */
	SOCKET_TYPE = 0xf,
	/* personality(2) */
	PER_IS_LINUX32 = 0x8,
	PER_IS_UNAME26 = 0x20000,
	PER_IS_NO_RANDOM = 0x40000, /* debuggers */
	PER_IS_ASKED = 0xffffffff,
};

/* clang-format off */
#define A(name) { SYS_##name, SECCOMP_ALLOW }
#define R(name) { SYS_##name, SECCOMP_REFUSE }
#define D(name) { SYS_##name, SECCOMP_DEV }
#define Q(name, ask) { SYS_##name, SECCOMP_ASK_##ask }

const struct seccomp_call seccomp_calls[] = {
	/* Reading and writing what is open. */
	A(read), A(write), A(pread64), A(pwrite64), A(readv), A(writev), A(preadv), A(pwritev),
	A(preadv2), A(pwritev2), A(lseek), A(close), A(close_range), A(dup), A(dup3), A(fcntl),
	A(flock), A(fsync), A(fdatasync), A(sync), A(syncfs), A(sync_file_range), A(ftruncate),
	A(fallocate), A(fadvise64), A(readahead), A(sendfile), A(splice), A(tee), A(vmsplice),
	A(copy_file_range), A(pipe2), { NR_cachestat, SECCOMP_ALLOW },
	Q(ioctl, IOCTL),

	/* Files by name: mounts, ids and Landlock decide. */
	A(openat), A(openat2), A(fstat), A(newfstatat), A(statx), A(statfs), A(fstatfs),
	A(faccessat), A(faccessat2), A(mkdirat), A(mknodat), A(unlinkat), A(renameat), A(renameat2),
	A(linkat), A(symlinkat), A(readlinkat), A(truncate), A(fchmod), A(fchmodat), A(fchown),
	A(fchownat), A(utimensat), A(umask), A(getcwd), A(chdir), A(fchdir), A(getdents64),
	A(name_to_handle_at), { NR_fchmodat2, SECCOMP_ALLOW }, { NR_file_getattr, SECCOMP_ALLOW },
	{ NR_file_setattr, SECCOMP_ALLOW },
	D(chroot), /* needs a capability that only root in dev has */

	/* Extended attributes. */
	A(setxattr), A(lsetxattr), A(fsetxattr), A(getxattr), A(lgetxattr), A(fgetxattr),
	A(listxattr), A(llistxattr), A(flistxattr), A(removexattr), A(lremovexattr),
	A(fremovexattr), { NR_setxattrat, SECCOMP_ALLOW }, { NR_getxattrat, SECCOMP_ALLOW },
	{ NR_listxattrat, SECCOMP_ALLOW }, { NR_removexattrat, SECCOMP_ALLOW },

	/*
	 * Waiting for events. The old asynchronous reads (io_setup) are ABSENT: one counter for the
	 * whole machine limits them, and databases work without them.
	 */
	A(epoll_create1), A(epoll_ctl), A(epoll_pwait), A(epoll_pwait2), A(ppoll), A(pselect6),
	A(eventfd2), A(signalfd4), A(timerfd_create), A(timerfd_settime), A(timerfd_gettime),
	A(inotify_init1), A(inotify_add_watch), A(inotify_rm_watch),

	/* Memory. */
	A(mmap), A(munmap), A(mprotect), A(mremap), A(msync), A(mincore), A(madvise), A(brk),
	A(mlock), A(mlock2), A(munlock), A(mlockall), A(munlockall), A(remap_file_pages),
	A(pkey_alloc), A(pkey_free), A(pkey_mprotect), A(memfd_create), A(membarrier),
	A(get_mempolicy), A(set_mempolicy), A(mbind), A(process_madvise),
	{ NR_process_mrelease, SECCOMP_ALLOW },
	{ NR_map_shadow_stack, SECCOMP_ALLOW }, { NR_mseal, SECCOMP_ALLOW },
	A(shmget), A(shmat), A(shmctl), A(shmdt),

	/*
	 * Processes and threads. The flags of clone3 are in memory and cannot be checked, so
	 * commands do not get it; libraries then use clone.
	 */
	{ SYS_clone3, SECCOMP_INIT_ABSENT },
	Q(clone, CLONE), Q(unshare, UNSHARE), Q(personality, PERSONALITY), Q(prctl, PRCTL),
	A(execve), A(execveat), A(exit), A(exit_group), A(wait4), A(waitid), A(getpid), A(getppid),
	A(gettid), A(getpgid), A(setpgid), A(getsid), A(setsid), A(set_tid_address),
	A(set_robust_list), A(get_robust_list), A(rseq), A(futex), { NR_futex_waitv, SECCOMP_ALLOW },
	{ NR_futex_wake, SECCOMP_ALLOW }, { NR_futex_wait, SECCOMP_ALLOW },
	{ NR_futex_requeue, SECCOMP_ALLOW }, A(pidfd_open), A(pidfd_send_signal), A(kcmp),
	A(getrandom), A(restart_syscall),

	/* Debuggers: the pid namespace bounds them, and init cannot be traced. */
	D(ptrace), D(process_vm_readv), D(process_vm_writev), D(pidfd_getfd),

	/* Signals. */
	A(kill), A(tkill), A(tgkill), A(rt_sigaction), A(rt_sigprocmask), A(rt_sigreturn),
	A(rt_sigpending), A(rt_sigtimedwait), A(rt_sigqueueinfo), A(rt_tgsigqueueinfo),
	A(rt_sigsuspend), A(sigaltstack),

	/* Identity; capabilities decide. */
	A(getuid), A(geteuid), A(getgid), A(getegid), A(getresuid), A(getresgid), A(getgroups),
	A(setuid), A(setgid), A(setreuid), A(setregid), A(setresuid), A(setresgid), A(setfsuid),
	A(setfsgid), A(setgroups), A(capget), A(capset),

	/* Programs may restrict themselves further. */
	A(seccomp), A(landlock_create_ruleset), A(landlock_add_rule), A(landlock_restrict_self),

	/* Time, own limits, own scheduling. */
	A(clock_gettime), A(clock_getres), A(clock_nanosleep), A(nanosleep), A(gettimeofday),
	A(times), A(getitimer), A(setitimer), A(timer_create), A(timer_settime), A(timer_gettime),
	A(timer_getoverrun), A(timer_delete), A(getrusage), A(getrlimit),
	{ SYS_setrlimit, SECCOMP_ASK_SETRLIMIT }, { SYS_prlimit64, SECCOMP_ASK_PRLIMIT_PID }, A(getpriority), A(setpriority), A(ioprio_get), A(ioprio_set), A(sched_yield),
	A(sched_getaffinity), A(sched_setaffinity), A(sched_getparam), A(sched_setparam),
	A(sched_getscheduler), A(sched_setscheduler), A(sched_getattr), A(sched_setattr),
	A(sched_get_priority_max), A(sched_get_priority_min), A(sched_rr_get_interval), A(getcpu),
	A(uname), A(sysinfo),

	/* Sockets; System V and POSIX messages within the ipc namespace. */
	Q(socket, SOCKET), Q(socketpair, SOCKETPAIR), A(bind), A(listen), A(accept), A(accept4),
	A(connect), A(shutdown), A(getsockname), A(getpeername), A(getsockopt), A(setsockopt),
	A(sendto), A(sendmsg), A(sendmmsg), A(recvfrom), A(recvmsg), A(recvmmsg),
	A(semget), A(semop), A(semctl), A(semtimedop), A(msgget), A(msgsnd), A(msgrcv), A(msgctl),
	A(mq_open), A(mq_unlink), A(mq_timedsend), A(mq_timedreceive), A(mq_notify),
	A(mq_getsetattr),

#ifdef __x86_64__
	/* The old forms of the above, and thread setup. */
	A(open), A(creat), A(stat), A(lstat), A(access), A(mkdir), A(rmdir), A(mknod), A(rename),
	A(link), A(unlink), A(symlink), A(readlink), A(chmod), A(chown), A(lchown), A(utime),
	A(utimes), A(futimesat), A(getdents), A(poll), A(select), A(epoll_create), A(epoll_wait),
	A(eventfd), A(signalfd), A(inotify_init), A(pipe), A(dup2), A(fork), A(vfork), A(getpgrp),
	A(alarm), A(pause), A(time), A(arch_prctl), { NR_uretprobe, SECCOMP_ALLOW },
	{ NR_uprobe, SECCOMP_ALLOW },
#endif

	/* Refused: they act where no filter sees it, or often break kernels. */
	R(io_uring_setup), R(io_uring_enter), R(io_uring_register), R(bpf), R(perf_event_open),
	R(userfaultfd), R(add_key), R(request_key), R(keyctl), R(fanotify_init), R(fanotify_mark),
	R(move_pages), R(migrate_pages), R(lookup_dcookie),
	{ NR_memfd_secret, SECCOMP_REFUSE }, /* memory that even the warden cannot read */

	/* Refused: they could get around the mounts. */
	R(open_by_handle_at), R(mount), R(umount2), R(pivot_root), R(fsopen), R(fsconfig), R(fsmount),
	R(fspick), R(move_mount), R(open_tree), { NR_open_tree_attr, SECCOMP_REFUSE },
	R(mount_setattr), { SYS_setns, SECCOMP_INIT }, R(quotactl), { NR_quotactl_fd, SECCOMP_REFUSE }, R(nfsservctl),

	/* Refused: they affect the whole machine. */
	R(kexec_load), R(init_module), R(finit_module), R(delete_module), R(swapon), R(swapoff),
	R(reboot), R(acct), R(syslog), R(vhangup), R(sethostname), R(setdomainname), R(adjtimex),
	R(clock_adjtime), R(clock_settime), R(settimeofday),
#ifdef SYS_kexec_file_load
	R(kexec_file_load),
#endif
#ifdef __x86_64__
	R(iopl), R(ioperm), R(modify_ldt), R(create_module), R(get_kernel_syms), R(query_module),
	R(uselib), R(ustat), R(sysfs),
#endif
};
const int seccomp_ncalls = ARRAY_LEN(seccomp_calls);

/* What bubblewrap, a browser, crun and cay itself need to build a sandbox. */
static const uint16_t nesting[] = {
	SYS_clone, SYS_clone3, SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root,
	SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_move_mount, SYS_open_tree,
	NR_open_tree_attr, SYS_mount_setattr, SYS_sethostname, SYS_setdomainname,
};

uint8_t seccomp_answer_of(const struct seccomp_call *c, bool nested)
{
	if (nested && c->nr == SYS_keyctl)
		return SECCOMP_ABSENT;
	for (size_t i = 0; nested && i < ARRAY_LEN(nesting); i++)
		if (nesting[i] == c->nr)
			return SECCOMP_ALLOW;
	return c->answer;
}

static const struct seccomp_span nothing_new[] = { { 0, 0, SECCOMP_ALLOW } };

/* TIOCSTI injects input into a terminal, TIOCLINUX pastes, TIOCSETD reaches line disciplines. */
static const struct seccomp_span ioctls[] = {
	{ TIOCSTI, TIOCSTI, SECCOMP_REFUSE },
	{ TIOCLINUX, TIOCLINUX, SECCOMP_REFUSE },
	{ TIOCSETD, TIOCSETD, SECCOMP_REFUSE },
};

static const struct seccomp_span prctls[] = {
	{ PR_SET_PDEATHSIG, PR_SET_DUMPABLE, SECCOMP_ALLOW },
	{ PR_GET_KEEPCAPS, PR_SET_KEEPCAPS, SECCOMP_ALLOW },
	{ PR_GET_TIMING, PR_GET_NAME, SECCOMP_ALLOW },
	{ PR_GET_SECCOMP, PR_MCE_KILL_GET, SECCOMP_ALLOW }, /* bounding set, securebits, slack */
	{ PR_SET_MM, PR_SET_MM, SECCOMP_REFUSE },
	{ PR_SET_CHILD_SUBREAPER, PR_GET_THP_DISABLE, SECCOMP_ALLOW }, /* NO_NEW_PRIVS too */
	{ PR_CAP_AMBIENT, PR_CAP_AMBIENT, SECCOMP_ALLOW },
	{ PR_GET_SPECULATION_CTRL, PR_SET_SPECULATION_CTRL, SECCOMP_ALLOW },
	{ PR_SET_IO_FLUSHER, PR_GET_IO_FLUSHER, SECCOMP_REFUSE },
	{ PR_SET_SYSCALL_USER_DISPATCH, PR_SET_SYSCALL_USER_DISPATCH, SECCOMP_ALLOW },
	{ OPT_MDWE_SET, OPT_MDWE_GET, SECCOMP_ALLOW },
	/* timing reveals pages merged with a neighbour's */
	{ OPT_MEMORY_MERGE_SET, OPT_MEMORY_MERGE_SET, SECCOMP_REFUSE },
	{ OPT_MEMORY_MERGE_GET, OPT_MEMORY_MERGE_GET, SECCOMP_ALLOW },
	{ OPT_AUXV, OPT_AUXV, SECCOMP_ALLOW },
	{ OPT_VMA_NAME, OPT_VMA_NAME, SECCOMP_ALLOW },
	{ OPT_PTRACER, OPT_PTRACER, SECCOMP_ALLOW },
};

static const struct seccomp_span personalities[] = {
	{ 0, 0, SECCOMP_ALLOW },
	{ PER_IS_LINUX32, PER_IS_LINUX32, SECCOMP_ALLOW },
	{ PER_IS_UNAME26, PER_IS_UNAME26, SECCOMP_ALLOW },
	{ PER_IS_UNAME26 | PER_IS_LINUX32, PER_IS_UNAME26 | PER_IS_LINUX32, SECCOMP_ALLOW },
	{ PER_IS_NO_RANDOM, PER_IS_NO_RANDOM, SECCOMP_ALLOW },
	{ PER_IS_NO_RANDOM | PER_IS_LINUX32, PER_IS_NO_RANDOM | PER_IS_LINUX32, SECCOMP_ALLOW },
	{ PER_IS_ASKED, PER_IS_ASKED, SECCOMP_ALLOW },
};

/*
 * RLIMIT_CORE is 1, which keeps the kernel from starting the host's core dump program; with 0 the
 * kernel would start it. Many programs set it to 0: we ignore that and report success.
 */
static const struct seccomp_span core_limit[] = { { RLIMIT_CORE, RLIMIT_CORE, SECCOMP_PRETEND } };
/*
 * Commands may not change init's limits. The kernel would allow it, because root's commands (and
 * all commands of a rootless sandbox) have the same user as init.
 */
static const struct seccomp_span limits_of_init[] = {
	{ 0, 0, SECCOMP_ASK_PRLIMIT },
	{ 1, 1, SECCOMP_REFUSE },
	{ 2, ~0u, SECCOMP_ASK_PRLIMIT },
};
static const struct seccomp_span core_limits[] = {
	{ RLIMIT_CORE, RLIMIT_CORE, SECCOMP_ASK_PRLIMIT_LOW },
};
/* Without a new value the call only reads. */
static const struct seccomp_span no_new_low[] = { { 0, 0, SECCOMP_ASK_PRLIMIT_HIGH } };
static const struct seccomp_span no_new_high[] = { { 0, 0, SECCOMP_ALLOW } };

static const struct seccomp_span pair_families[] = { { AF_UNIX, AF_UNIX, SECCOMP_ALLOW } };

static const struct seccomp_span families[] = {
	{ AF_UNIX, AF_UNIX, SECCOMP_ALLOW },
	{ AF_INET, AF_INET, SECCOMP_ASK_INET_TYPE },
	{ AF_INET6, AF_INET6, SECCOMP_ASK_INET_TYPE },
	{ AF_NETLINK, AF_NETLINK, SECCOMP_ASK_NETLINK_PROTOCOL },
};

static const struct seccomp_span inet_types[] = {
	{ SOCK_STREAM, SOCK_DGRAM, SECCOMP_ASK_INET_PROTOCOL },
};

/* ICMP datagram sockets, which only send and receive echoes (ping). */
static const struct seccomp_span inet_protocols[] = {
	{ 0, IPPROTO_ICMP, SECCOMP_ALLOW },
	{ IPPROTO_TCP, IPPROTO_TCP, SECCOMP_ALLOW },
	{ IPPROTO_UDP, IPPROTO_UDP, SECCOMP_ALLOW },
	{ IPPROTO_ICMPV6, IPPROTO_ICMPV6, SECCOMP_ALLOW },
};

/*
 * useradd and su continue only if auditing is not available at all; so does ss, which then reads
 * /proc/net.
 */
static const struct seccomp_span netlink_protocols[] = {
	{ NETLINK_ROUTE, NETLINK_ROUTE, SECCOMP_ALLOW },
	{ NETLINK_SOCK_DIAG, NETLINK_SOCK_DIAG, SECCOMP_NO_PROTOCOL },
	{ NETLINK_AUDIT, NETLINK_AUDIT, SECCOMP_NO_PROTOCOL },
};

#define ASK(name, list, which, bits, rest) \
	[SECCOMP_ASK_##name - SECCOMP_ASK_FIRST] = { .spans = list, .n = ARRAY_LEN(list), \
						     .arg = which, .mask = bits, .other = rest }

const struct seccomp_question seccomp_questions[] = {
	/* Init can do the same by clone3; seccomp_command.c refuses it to commands. */
	ASK(CLONE, nothing_new, 0, NEW_NAMESPACES, SECCOMP_INIT),
	ASK(UNSHARE, nothing_new, 0, NEW_NAMESPACES | NEW_TIME, SECCOMP_INIT),
	ASK(IOCTL, ioctls, 1, ~0u, SECCOMP_ALLOW),
	ASK(PRCTL, prctls, 0, ~0u, SECCOMP_UNKNOWN),
	ASK(PERSONALITY, personalities, 0, ~0u, SECCOMP_REFUSE),
	ASK(SETRLIMIT, core_limit, 0, ~0u, SECCOMP_ALLOW),
	ASK(PRLIMIT_PID, limits_of_init, 0, ~0u, SECCOMP_REFUSE),
	ASK(PRLIMIT, core_limits, 1, ~0u, SECCOMP_ALLOW),
	ASK(PRLIMIT_LOW, no_new_low, 2, ~0u, SECCOMP_PRETEND),
	[SECCOMP_ASK_PRLIMIT_HIGH - SECCOMP_ASK_FIRST] = { .spans = no_new_high, .n = 1, .arg = 2,
							   .mask = ~0u, .high = true,
							   .other = SECCOMP_PRETEND },
	ASK(SOCKETPAIR, pair_families, 0, ~0u, SECCOMP_REFUSE),
	ASK(SOCKET, families, 0, ~0u, SECCOMP_REFUSE),
	ASK(INET_TYPE, inet_types, 1, SOCKET_TYPE, SECCOMP_REFUSE),
	ASK(INET_PROTOCOL, inet_protocols, 2, ~0u, SECCOMP_REFUSE),
	ASK(NETLINK_PROTOCOL, netlink_protocols, 2, ~0u, SECCOMP_REFUSE),
};
/* clang-format on */
