/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes: init, those of other calls, those of the host. Where the controls run,
 * process 1 is the program itself, as open to its children as any process of one user.
 */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* a[0]: 1 is init, else the process of another call. */
static pid_t target(const struct check *c)
{
	return c->a[0] ? (pid_t)c->a[0] : (pid_t)param_number("PEER");
}

static int seized(const struct check *c)
{
	return result(ptrace(PTRACE_SEIZE, target(c), NULL, NULL));
}

static int attached(const struct check *c)
{
	int r = result(ptrace(PTRACE_ATTACH, target(c), NULL, NULL));

	if (r == 0 && waitpid(target(c), NULL, __WALL) > 0)
		(void)ptrace(PTRACE_DETACH, target(c), NULL, NULL);
	return r;
}

/* Of memory that nobody has: EFAULT comes after the question of rights. */
static int peeked(const struct check *c)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { NULL, 1 };

	there.iov_base = (char *)(uintptr_t)16;
	return result(syscall(c->nr, target(c), &here, 1, &there, 1, 0));
}

static int taken(const struct check *c)
{
	long pidfd = syscall(SYS_pidfd_open, target(c), 0);

	return pidfd < 0 ? -errno : result(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

enum { DOTS = 48 }; /* bytes of the two entries that every directory has */

/* The first of what it holds: some files answer for their rights only then. */
static int looked(const struct check *c)
{
	int fd = open(c->path, O_RDONLY | O_CLOEXEC);
	char some[4096];
	long n;

	if (fd < 0)
		return -errno;
	do
		n = syscall(SYS_getdents64, fd, some, sizeof some);
	while (n == DOTS);
	if (n < 0 && errno == ENOTDIR)
		n = read(fd, some, sizeof some);
	return n < 0 ? -errno : n == 0 ? -ENODATA : 0;
}

static int linked(const struct check *c)
{
	char text[256];

	return result(readlink(c->path, text, sizeof text));
}

static int compared(const struct check *c)
{
	return result(syscall(SYS_kcmp, c->a[0], getpid(), KCMP_VM, 0, 0) < 0 ? -1 : 0);
}

static int robust(const struct check *c)
{
	void *head;
	size_t n;

	(void)c;
	return result(syscall(SYS_get_robust_list, 1, &head, &n));
}

static int pinned(const struct check *c)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof all, &all) < 0)
		return -errno;
	return result(sched_setaffinity(target(c), sizeof all, &all));
}

/* Each sets what is set already. */
static int limited(const struct check *c)
{
	struct rlimit l = { 64, 64 };

	/* Where it may not be read, any will do: the question of rights comes first. */
	(void)prlimit(target(c), RLIMIT_NOFILE, NULL, &l);
	return result(prlimit(target(c), RLIMIT_NOFILE, &l, NULL));
}

static int limits_read(const struct check *c)
{
	struct rlimit l;

	return result(prlimit(target(c), RLIMIT_NOFILE, NULL, &l));
}

static int niced(const struct check *c)
{
	return result(setpriority(PRIO_PROCESS, (id_t)target(c), getpriority(PRIO_PROCESS, 0)));
}

/* The group of init is its own. */
static int group_niced(const struct check *c)
{
	return result(
		setpriority(PRIO_PGRP, (id_t)getpgid(target(c)), getpriority(PRIO_PROCESS, 0)));
}

enum { IO_WHO_PROCESS = 1, IO_CLASS_IDLE = 3 << 13 };

static int io_niced(const struct check *c)
{
	return result(syscall(SYS_ioprio_set, IO_WHO_PROCESS, target(c), IO_CLASS_IDLE));
}

static int scheduled(const struct check *c)
{
	struct sched_param p = { 0 };

	return result(syscall(SYS_sched_setscheduler, target(c), SCHED_BATCH, &p));
}

static int schedule_set(const struct check *c)
{
	struct sched_param p = { 0 };

	return result(syscall(SYS_sched_setparam, target(c), &p));
}

enum { ATTR_SIZE = 48, ATTR_BATCH = 3, ATTR_NICE = 4 };

static int attr_scheduled(const struct check *c)
{
	uint32_t attr[ATTR_SIZE / 4] = { ATTR_SIZE, ATTR_BATCH };

	attr[ATTR_NICE] = (uint32_t)getpriority(PRIO_PROCESS, 0);

	return result(syscall(SYS_sched_setattr, target(c), attr, 0));
}

/* Of memory that nobody has: ENOMEM comes after the question of rights. */
static int advised(const struct check *c)
{
	long pidfd = syscall(SYS_pidfd_open, target(c), 0);
	struct iovec there = { NULL, 4096 };

	there.iov_base = (char *)(uintptr_t)4096;
	return pidfd < 0 ? -errno
			 : result(syscall(SYS_process_madvise, pidfd, &there, 1, MADV_COLD, 0));
}

/*
 * Writes to the file what it holds. The kernel prints coredump_filter (a[0] set) in hexadecimal
 * without a prefix, and takes a number without a prefix for octal.
 */
static int rewritten(const struct check *c)
{
	int fd = open(c->path, O_RDWR | O_CLOEXEC), skip = c->a[0] ? 0 : 2;
	char text[64] = "0x";
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text + 2, sizeof text - 2);
	return n < 0 ? -errno : result(write(fd, text + skip, (size_t)(n + 2 - skip)));
}

static int signalled(const struct check *c)
{
	(void)c;
	return result(kill((pid_t)param_number("HOST_PID"), 0));
}

static int held(const struct check *c)
{
	(void)c;
	return result(syscall(SYS_pidfd_open, param_number("HOST_PID"), 0));
}

static int host_asked(const struct check *c)
{
	return result(syscall(c->nr, c->a[0] ? PRIO_PROCESS : param_number("HOST_PID"),
			      param_number("HOST_PID")));
}

static int host_scheduled(const struct check *c)
{
	cpu_set_t cpus;

	(void)c;
	return result(sched_getaffinity((pid_t)param_number("HOST_PID"), sizeof cpus, &cpus));
}

static int host_named(const struct check *c)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)c;
	return result(faccessat(proc, param("HOST_PID"), F_OK, 0));
}

/* Init's memory is not to be looked into by anybody. */
#define INIT(id, file, what) \
	{ \
		"init-" id, what " of init", looked, NS, .lacks = "ENODATA", .dev = CLOSED, \
							 .path = "/proc/1/" file \
	}
#define INIT_LINK(id, file, what) \
	{ \
		"init-" id, what " of init", linked, NS, .dev = CLOSED, .path = "/proc/1/" file \
	}
#define INIT_SET(id, file, what) \
	{ \
		"init-" id, what " of init", run_write_open, NS, .dev = CLOSED, \
								 .path = "/proc/1/" file \
	}
/*
 * Root inside owns these files of init and can change them for the worse of its own sandbox only:
 * which process the kernel kills first for want of memory, and what a core dump that init never
 * makes would hold.
 */
#define INIT_REWRITE(id, file, what, of_root, is_hex) \
	{ \
		"init-" id, what " of init", rewritten, NS, \
			.dev = CLOSED, .root = of_root, .a = { is_hex }, .path = "/proc/1/" file \
	}
#define HOST "ESRCH|EINVAL|ENOENT"

/* clang-format off */
static const struct check checks[] = {
	{ "init-seize", "debugging init", seized, NS, .a = { 1 } },
	{ "init-attach", "stopping init", attached, NS, .a = { 1 } },
	{ "init-vm-read", "memory of init", peeked, NS, .allowed = "EFAULT", .nr = SYS_process_vm_readv, .a = { 1 } },
	{ "init-vm-write", "changing memory of init", peeked, NS, .allowed = "EFAULT", .nr = SYS_process_vm_writev, .a = { 1 } },
	{ "init-getfd", "a descriptor of init", taken, NS, .a = { 1 } },
	{ "init-kcmp", "comparing with init", compared, NS, .a = { 1 } },
	{ "init-robust", "locks of init", robust, NS, .a = { 1 } },
	{ "init-mem", "memory of init", run_open, NS, .dev = CLOSED, .path = "/proc/1/mem" },
	INIT("environ", "environ", "the environment"), INIT("maps", "maps", "the map of memory"),
	INIT("smaps", "smaps", "memory in use"), INIT("pagemap", "pagemap", "pages"), INIT("auxv", "auxv", "addresses"),
	INIT("io", "io", "input and output"), INIT("fdinfo", "fdinfo", "descriptors"), INIT("map-files", "map_files", "mapped files"),
	{ "init-ns-mnt", "the mounts of init", run_open, NS, .dev = CLOSED, .path = "/proc/1/ns/mnt" },
	{ "init-ns-user", "the user namespace of init", run_open, NS, .dev = CLOSED, .path = "/proc/1/ns/user" },
	 INIT("personality", "personality", "the personality"),
	INIT("syscall", "syscall", "the system call"), INIT("root", "root/", "the root"), INIT("cwd", "cwd/", "the directory"),
	INIT_LINK("exe", "exe", "the program"), INIT_LINK("fd", "fd/0", "a descriptor"), INIT_LINK("root-link", "root", "the root"),
	INIT_SET("mem-write", "mem", "memory, written"), { "init-clear_refs", "marks on pages of init", run_write_open, NS, .dev = CLOSED, .root = "ok", .path = "/proc/1/clear_refs" },
	{ "peer-seize", "debugging another call", seized, PLAIN, .dev = "ok", .root = "ok", .locked = "EPERM" },
	{ "peer-vm-read", "memory of another call", peeked, PLAIN, .allowed = "EFAULT", .dev = "EFAULT", .locked = "EPERM", .nr = SYS_process_vm_readv },
	{ "peer-vm-write", "changing memory of another call", peeked, PLAIN, .allowed = "EFAULT", .dev = "EFAULT", .locked = "EPERM", .nr = SYS_process_vm_writev },
	{ "peer-getfd", "a descriptor of another call", taken, PLAIN, .dev = "ok", .locked = "EPERM" },
	{ "init-cpus", "CPUs of init", pinned, NS, .a = { 1 } },
	{ "init-limits", "limits of init, set", limited, NS, .a = { 1 } },
	{ "init-limits-read", "limits of init, read", limits_read, NS, .a = { 1 } },
	{ "init-nice", "the priority of init", niced, NS, .a = { 1 } },
	{ "init-nice-group", "the priority of the group of init", group_niced, NS, .a = { 1 } },
	{ "init-io-nice", "the priority of init for disks", io_niced, NS, .a = { 1 } },
	{ "init-scheduler", "the scheduling of init", scheduled, NS, .a = { 1 } },
	{ "init-sched-param", "the parameter of its scheduling", schedule_set, NS, .a = { 1 } },
	{ "init-sched-attr", "the scheduling of init, the newer way", attr_scheduled, NS, .a = { 1 } },
	{ "init-madvise", "pages of init pushed out", advised, ROOT, .allowed = "ENOMEM", .dev = "EPERM|EACCES", .a = { 1 } },
	INIT_REWRITE("oom", "oom_score_adj", "the order of death", "ok", false),
	INIT_REWRITE("coredump", "coredump_filter", "the core dump", "ok", true),
	INIT_REWRITE("timerslack", "timerslack_ns", "the timers", CLOSED, false),
	{ "host-signal", "a signal to a process of the host", signalled, PLAIN, .dev = HOST, .bare = HOST },
	{ "host-pidfd", "a handle of a process of the host", held, PLAIN, .dev = HOST, .bare = HOST },
	{ "host-pgid", "the group of a process of the host", host_asked, PLAIN, .dev = HOST, .bare = HOST, .nr = SYS_getpgid },
	{ "host-sid", "the session of a process of the host", host_asked, PLAIN, .dev = HOST, .bare = HOST, .nr = SYS_getsid },
	{ "host-nice", "the priority of a process of the host", host_asked, PLAIN, .dev = HOST, .bare = HOST, .nr = SYS_getpriority, .a = { 1 } },
	{ "host-scheduler", "the scheduling of a process of the host", host_asked, PLAIN, .dev = HOST, .bare = HOST, .nr = SYS_sched_getscheduler },
	{ "host-cpus", "the CPUs of a process of the host", host_scheduled, PLAIN, .dev = HOST, .bare = HOST },
	{ "host-proc", "the files of a process of the host", host_named, PLAIN, .dev = HOST, .bare = HOST },
};
/* clang-format on */

const struct topic processes_topic = { "processes", checks, sizeof checks / sizeof checks[0] };
