/* SPDX-License-Identifier: Apache-2.0 */
/* Oneself: more rights, more time, another ABI, somebody else's terminal. */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

int prctl(int option, ...);

enum { MERGE = 67, DEADLINE = 6, LIMIT_MIB = 64 };

static int capabilities(const struct check *c)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	d[0].permitted |= 1u << c->a[0];
	d[0].effective |= 1u << c->a[0];
	return result(syscall(SYS_capset, &h, d));
}

static int bounded(const struct check *c)
{
	return prctl(PR_CAPBSET_READ, c->a[0], 0, 0, 0) == 1 ? 0 : -EPERM;
}

static int process_option(const struct check *c)
{
	return result(syscall(SYS_prctl, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4]));
}

static int scheduled(const struct check *c)
{
	struct sched_param p = { .sched_priority = 1 };

	return result(syscall(SYS_sched_setscheduler, 0, c->a[0], &p));
}

static int deadline(const struct check *c)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { sizeof a, DEADLINE, 0, 0, 0, 1000000, 100000000, 100000000 };

	(void)c;
	return result(syscall(SYS_sched_setattr, 0, &a, 0));
}

static int hurried(const struct check *c)
{
	(void)c;
	return result(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1));
}

static int core(const struct check *c)
{
	struct rlimit l = { 4096, 4096 },
		      now; /* 1 means none at all, also where a program would take it */

	(void)c;
	/* Inside it is answered as done: what counts is whether it is. */
	if (setrlimit(RLIMIT_CORE, &l) < 0 || getrlimit(RLIMIT_CORE, &now) < 0)
		return -errno;
	return now.rlim_cur == l.rlim_cur ? 0 : -EPERM;
}

static int locked_pages(const struct check *c)
{
	void *p = mmap(NULL, LIMIT_MIB << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	(void)c;
	return p == MAP_FAILED ? -errno : result(mlock(p, LIMIT_MIB << 20));
}

static int spared(const struct check *c)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : result(write(fd, c->path, (size_t)c->a[0]));
}

static int grouped(const struct check *c)
{
	gid_t none = 0;

	(void)c;
	return result(setgroups(1, &none));
}

/* The old ABI has other numbers: there 20 is getpid, 102 all of the sockets. */
static int old_abi(const struct check *c)
{
	long r = c->a[0];

	__asm__ volatile("int $0x80"
			 : "+a"(r)
			 : "b"(c->a[1]), "c"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	if (r < 0)
		errno = (int)-r;
	return r < 0 ? (int)r : 0;
}

/* Types into a terminal that is our own, so that it is no matter of rights. a[0]: of the request */
static int typed(const struct check *c)
{
	int master, slave;
	long zero = c->a[1];

	(void)setsid();
	master = posix_openpt(O_RDWR | O_CLOEXEC);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -errno;
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	return result(syscall(SYS_ioctl, (long)slave, c->a[0], &zero));
}

/* clang-format off */
static const struct check checks[] = {
	{ "be-root", "to be root", run_call, NS, .dev = "EPERM|EINVAL", .root = "ok", .nr = SYS_setresuid },
	{ "be-roots-group", "to be of root's group", run_call, NS, .dev = "EPERM|EINVAL", .root = "ok", .nr = SYS_setresgid },
	{ "be-in-groups", "to be in more groups", grouped, ROOT, .root = "ok" },
	{ "cap-sys_admin", "administration", capabilities, NS, .a = { CAP_SYS_ADMIN } },
	{ "cap-net_admin", "administration of the network", capabilities, NS, .a = { CAP_NET_ADMIN } },
	{ "cap-net_raw", "packets", capabilities, NS, .a = { CAP_NET_RAW } },
	{ "cap-sys_ptrace", "debugging others", capabilities, NS, .a = { CAP_SYS_PTRACE } },
	{ "cap-dac_read", "reading everything", capabilities, NS, .a = { CAP_DAC_READ_SEARCH } },
	{ "cap-mknod", "devices", capabilities, NS, .a = { CAP_MKNOD } },
	{ "cap-dac_override", "writing everything", capabilities, NS, .root = "ok", .a = { CAP_DAC_OVERRIDE } },
	{ "bound-sys_admin", "administration, after an exec", bounded, NS, .a = { CAP_SYS_ADMIN } },
	{ "bound-net_admin", "the network, after an exec", bounded, NS, .a = { CAP_NET_ADMIN } },
	{ "bound-sys_ptrace", "debugging, after an exec", bounded, NS, .a = { CAP_SYS_PTRACE } },
	{ "bound-sys_module", "modules, after an exec", bounded, NS, .a = { CAP_SYS_MODULE } },
	{ "bound-sys_rawio", "hardware, after an exec", bounded, NS, .a = { CAP_SYS_RAWIO } },
	{ "bound-bpf", "bpf, after an exec", bounded, NS, .a = { 39 } },
	{ "bound-setuid", "other users, after an exec", bounded, NS, .dev = "ok", .locked = "EPERM", .a = { CAP_SETUID } },
	{ "chroot", "another root", run_call, NS, .allowed = "EFAULT", .dev = "EPERM|EFAULT", .root = "EFAULT", .locked = "EPERM", .nr = SYS_chroot },
	{ "traceme", "being debugged", run_call, PLAIN, .dev = "ok", .locked = "EPERM", .nr = SYS_ptrace },
	{ "set-mm", "one's own memory map", process_option, PLAIN, .allowed = "ok|EINVAL|EFAULT", .lacks = "EPERM", .a = { PR_SET_MM, 14, 1, 0, 0 } },
	{ "set-mm-high-bits", "the same with high bits", process_option, PLAIN, .allowed = "ok|EINVAL|EFAULT", .lacks = "EPERM", .a = { PR_SET_MM | 1L << 32, 14, 1, 0, 0 } },
	{ "io-flusher", "memory before others", process_option, ROOT, .lacks = "EPERM|EINVAL", .a = { 57, 1 } },
	{ "merge", "pages merged with others'", process_option, PLAIN, .lacks = "EINVAL|EPERM", .a = { MERGE, 1 } },
	{ "read-implies-exec", "all memory executable", run_call, PLAIN, .nr = SYS_personality, .a = { READ_IMPLIES_EXEC } },
	{ "personality-null", "the page at 0", run_call, PLAIN, .nr = SYS_personality, .a = { MMAP_PAGE_ZERO } },
	{ "personality-compat", "addresses that can be guessed", run_call, PLAIN, .nr = SYS_personality, .a = { ADDR_COMPAT_LAYOUT } },
	{ "real-time", "before all others", scheduled, ROOT, .lacks = "EPERM", .bare = "EPERM", .a = { SCHED_FIFO } },
	{ "round-robin", "before all others, by turns", scheduled, ROOT, .lacks = "EPERM", .bare = "EPERM", .a = { SCHED_RR } },
	{ "deadline", "before all others, in time", deadline, ROOT, .lacks = "EPERM|EBUSY", .bare = "EPERM" },
	{ "nice", "more time than others", hurried, ROOT, .lacks = "EACCES", .dev = "EACCES|EPERM", .bare = "EACCES|EPERM" },
	{ "io-priority", "the disk before others", run_call, ROOT, .lacks = "EPERM", .bare = "EPERM", .nr = SYS_ioprio_set, .a = { 1, 0, 1 << 13 } },
	{ "core", "a core file", core, PLAIN, .lacks = "EPERM" },
	{ "locked-pages", "memory that stays", locked_pages, ROOT, .lacks = "ENOMEM|EAGAIN|EPERM", .dev = "ENOMEM|EAGAIN|EPERM" },
	{ "oom-never", "never killed for lack of memory", spared, ROOT, .lacks = "EACCES", .dev = "EACCES", .bare = "EACCES", .a = { 5 }, .path = "-1000" },
	{ "abi-32", "a call of the 32-bit ABI", old_abi, PLAIN, .lacks = "ENOSYS|SIGSEGV", .dev = "SIGSYS", .a = { 20 } },
	{ "abi-32-socket", "a socket by the 32-bit ABI", old_abi, PLAIN, .allowed = "EFAULT|EINVAL", .lacks = "ENOSYS|SIGSEGV", .dev = "SIGSYS", .a = { 102, 1 } },
	{ "abi-x32", "a call of the x32 ABI", run_call, PLAIN, .lacks = "ENOSYS", .dev = "ENOSYS", .nr = SYS_getpid | 0x40000000 },
	{ "type", "typing into a terminal", typed, PLAIN, .lacks = "EIO", .a = { TIOCSTI } },
	{ "type-high-bits", "the same with high bits", typed, PLAIN, .lacks = "EIO", .a = { 0x100000000L | TIOCSTI } },
	{ "paste", "pasting into a terminal", typed, PLAIN, .allowed = "ENOTTY|EINVAL", .a = { TIOCLINUX, 2 } },
	{ "discipline", "another discipline of a terminal", typed, PLAIN, .a = { TIOCSETD } },
};
/* clang-format on */

const struct topic self_topic = { "self", checks, sizeof checks / sizeof checks[0] };
