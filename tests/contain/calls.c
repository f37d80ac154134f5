/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that much of the kernel hides behind, by number. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { NR_quotactl_fd = 443, NR_memfd_secret = 447, NR_open_tree_attr = 467, WRONG = -1 };

static int uring(const struct check *c)
{
	char setup[120] = { 0 };

	return result(syscall(c->nr, 1, setup));
}

static int bpf_map(const struct check *c)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};

	return result(syscall(c->nr, BPF_MAP_CREATE, &attr, sizeof attr));
}

static int bpf_program(const struct check *c)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = { { .code = 0xb7 }, { .code = 0x95 } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2 };

	attr.insns = (unsigned long)code;
	attr.license = (unsigned long)"GPL";
	return result(syscall(c->nr, BPF_PROG_LOAD, &attr, sizeof attr));
}

static int perf(const struct check *c)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof attr,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	return result(syscall(c->nr, &attr, 0, -1, -1, 0));
}

static int key_add(const struct check *c)
{
	return result(syscall(c->nr, "user", "contain", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int key_request(const struct check *c)
{
	return result(syscall(c->nr, "user", "contain-no-such", NULL, 0));
}

/* The key that the suite has put into the session outside. */
static int key_find(const struct check *c)
{
	return result(
		syscall(c->nr, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", param("KEY"), 0));
}

/* A handle of a file that we see, opened again past all directories. */
static int handle(const struct check *c)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} h = { .head.handle_bytes = sizeof h.bytes };
	int fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC), id;

	if (fd < 0 || name_to_handle_at(fd, "bin", &h.head, &id, 0) < 0)
		h.head.handle_bytes = 8; /* no handles here: whether it is asked for at all */
	return result(syscall(c->nr, fd, &h, O_RDONLY | O_CLOEXEC));
}

static int ldt(const struct check *c)
{
	char space[64];

	return result(syscall(c->nr, 0, space, sizeof space));
}

static int timex(const struct check *c)
{
	char zeros[512] = { 0 }; /* no modes: only asks */

	return c->a[0] ? result(syscall(c->nr, 0L, zeros)) : result(syscall(c->nr, zeros));
}

static int old_ustat(const struct check *c)
{
	struct stat st;
	char space[64];

	if (stat("/proc", &st) < 0)
		return -errno;
	return result(syscall(c->nr, st.st_dev, space));
}

static int named(const struct check *c)
{
	return result(syscall(c->nr, c->path, c->a[1], c->a[2], c->a[3], c->a[4]));
}

static int clone3_plain(const struct check *c)
{
	unsigned long args[8] = { [4] = SIGCHLD };
	long pid = syscall(c->nr, args, sizeof args);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return result(pid);
}

static int bad_time(const struct check *c)
{
	static const long never[2] = { 0, -1 };

	return result(syscall(c->nr, 0, never));
}

#define KERNEL "ENOSYS"

/* clang-format off */
static const struct check checks[] = {
	{ "io_uring-setup", "operations that no filter sees", uring, PLAIN, .lacks = "EPERM|ENOSYS", .nr = SYS_io_uring_setup },
	{ "io_uring-enter", "submitting them", run_call, PLAIN, .allowed = "EBADF", .lacks = "EPERM|ENOSYS", .nr = SYS_io_uring_enter, .a = { WRONG } },
	{ "io_uring-register", "registering buffers", run_call, PLAIN, .allowed = "EBADF|EINVAL", .lacks = "EPERM|ENOSYS", .nr = SYS_io_uring_register, .a = { WRONG } },
	{ "bpf-map", "a map in the kernel", bpf_map, ROOT, .lacks = KERNEL, .bare = "EPERM", .nr = SYS_bpf },
	{ "bpf-program", "a program in the kernel", bpf_program, ROOT, .lacks = KERNEL, .bare = "EPERM", .nr = SYS_bpf },
	{ "perf", "performance counters", perf, PLAIN, .lacks = "ENOSYS|EACCES", .nr = SYS_perf_event_open },
	{ "userfaultfd", "stopping the kernel at a page fault", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_userfaultfd, .a = { 1 | O_CLOEXEC } },
	{ "memfd_secret", "memory that the warden cannot read", run_call, PLAIN, .lacks = KERNEL, .nr = NR_memfd_secret },
	{ "add_key", "a key", key_add, PLAIN, .lacks = KERNEL, .nr = SYS_add_key },
	{ "request_key", "calling the host's key helper", key_request, PLAIN, .allowed = "ENOKEY", .lacks = KERNEL, .nr = SYS_request_key },
	{ "keyctl", "the number of a keyring", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_keyctl, .a = { KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1 } },
	{ "keyctl-session", "the host's session keyring", key_find, PLAIN, .lacks = KERNEL, .nr = SYS_keyctl },
	{ "keyctl-join", "a session keyring", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_keyctl, .a = { KEYCTL_JOIN_SESSION_KEYRING } },
	{ "fanotify-init", "watching a file system", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_fanotify_init, .a = { 0x200 /* FAN_REPORT_FID */ } },
	{ "fanotify-mark", "marking a mount", run_call, PLAIN, .allowed = "EBADF|EINVAL", .lacks = KERNEL, .nr = SYS_fanotify_mark, .a = { WRONG, 1, 1, WRONG } },
	{ "open_by_handle", "a file past its directories", handle, ROOT, .bare = "EPERM|ESTALE|EOPNOTSUPP|EBADF", .nr = SYS_open_by_handle_at },
	{ "move_pages", "pages of others", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_move_pages },
	{ "migrate_pages", "pages of others, all", run_call, PLAIN, .allowed = "ok|EINVAL|EFAULT", .lacks = KERNEL, .nr = SYS_migrate_pages },
	{ "kexec", "another kernel", run_call, ROOT, .allowed = "EINVAL", .lacks = "ENOSYS|EPERM", .bare = "EPERM|ENOSYS", .nr = SYS_kexec_load, .a = { 0, 0, 0, 0xff } },
	{ "kexec-file", "another kernel from a file", run_call, ROOT, .allowed = "EINVAL|EBADF", .lacks = "ENOSYS|EPERM", .bare = "EPERM|ENOSYS", .nr = SYS_kexec_file_load, .a = { WRONG, WRONG, 0, 0, 0xff00 } },
	{ "init_module", "code for the kernel", run_call, ROOT, .allowed = "EFAULT|ENOEXEC", .lacks = "ENOSYS|EPERM", .bare = "EPERM|ENOSYS", .nr = SYS_init_module },
	{ "finit_module", "code for the kernel from a file", run_call, ROOT, .allowed = "EBADF|EINVAL", .lacks = "ENOSYS|EPERM", .bare = "EPERM|ENOSYS", .nr = SYS_finit_module, .a = { WRONG } },
	{ "delete_module", "taking code out of the kernel", named, ROOT, .allowed = "ENOENT", .lacks = "ENOSYS|EPERM", .bare = "EPERM|ENOSYS", .nr = SYS_delete_module, .a = { 0, O_NONBLOCK }, .path = "contain_no_such" },
	{ "swapon", "swap", named, ROOT, .allowed = "ENOENT", .lacks = KERNEL, .bare = "EPERM", .nr = SYS_swapon, .path = "/proc/no-such" },
	{ "swapoff", "taking swap away", named, ROOT, .allowed = "ENOENT|EINVAL", .lacks = KERNEL, .bare = "EPERM", .nr = SYS_swapoff, .path = "/proc/no-such" },
	{ "reboot", "switching off", run_call, NS, .allowed = "EINVAL", .bare = "EPERM", .nr = SYS_reboot },
	{ "acct", "process accounting", named, ROOT, .allowed = "ENOENT", .lacks = KERNEL, .bare = "EPERM|ENOSYS", .nr = SYS_acct, .path = "/proc/no-such" },
	{ "quotactl", "quotas", run_call, PLAIN, .allowed = "ok|EFAULT|ENODEV|ENOTBLK", .lacks = KERNEL, .nr = SYS_quotactl, .a = { 0x80000100 } },
	{ "quotactl-fd", "quotas by descriptor", run_call, PLAIN, .allowed = "EBADF", .lacks = KERNEL, .nr = NR_quotactl_fd, .a = { WRONG } },
	{ "syslog", "the kernel's log", run_call, ROOT, .lacks = KERNEL, .bare = "EPERM|ok", .nr = SYS_syslog, .a = { 10 } },
	{ "iopl", "ports of the hardware", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_iopl },
	{ "ioperm", "one port of the hardware", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_ioperm, .a = { 0, 1, 0 } },
	{ "modify_ldt", "the descriptor table", ldt, PLAIN, .lacks = KERNEL, .nr = SYS_modify_ldt },
	{ "settimeofday", "the clock", run_call, ROOT, .bare = "EPERM", .nr = SYS_settimeofday },
	{ "clock_settime", "the clock, anew", bad_time, PLAIN, .allowed = "EINVAL", .nr = SYS_clock_settime },
	{ "adjtimex", "the clock's pace", timex, PLAIN, .nr = SYS_adjtimex },
	{ "clock_adjtime", "the clock's pace, anew", timex, PLAIN, .nr = SYS_clock_adjtime, .a = { 1 } },
	{ "vhangup", "taking terminals away", run_call, ROOT, .bare = "EPERM", .nr = SYS_vhangup },
	{ "sethostname", "the host's name", named, NS, .bare = "EPERM", .nr = SYS_sethostname, .a = { 0, 1 }, .path = "x" },
	{ "setdomainname", "the domain's name", named, NS, .bare = "EPERM", .nr = SYS_setdomainname, .a = { 0, 1 }, .path = "x" },
	{ "sysfs", "the list of file systems", run_call, PLAIN, .lacks = KERNEL, .nr = SYS_sysfs, .a = { 3 } },
	{ "ustat", "a device's state", old_ustat, PLAIN, .lacks = KERNEL, .nr = SYS_ustat },
	{ "uselib", "an old library", named, PLAIN, .allowed = "ENOENT", .lacks = KERNEL, .nr = SYS_uselib, .path = "/proc/no-such" },
	{ "lookup_dcookie", "a profiler's name of a file", run_call, ROOT, .allowed = "EINVAL", .lacks = KERNEL, .nr = SYS_lookup_dcookie },
	{ "clone3", "flags that no filter can see", clone3_plain, PLAIN, .dev = "ENOSYS", .nr = SYS_clone3 },
	{ "open_tree_attr", "a mount with other rights", run_call, PLAIN, .allowed = "EBADF|EINVAL|ENOENT|EFAULT", .lacks = KERNEL, .nr = NR_open_tree_attr, .a = { WRONG, 0, 0x1000, 0, 0 } },
};
/* clang-format on */

const struct topic calls_topic = { "calls", checks, sizeof checks / sizeof checks[0] };
