/* SPDX-License-Identifier: Apache-2.0 */
/* /proc: what tells of the host, and what changes it. Nothing is written, only opened for it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

static int listed(const struct check *c)
{
	DIR *d = opendir(c->path);
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			return 0;
	return -ENODATA;
}

/* Whether the entry shows anything: a line of a file, or a name in a directory. */
static bool shows(const char *path)
{
	const struct check at = { .path = path };

	return listed(&at) == 0 || run_read(&at) == 0;
}

static bool is_named(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* Gets through where the directory has an entry that is none of these and is not empty. */
static int finds_more(const char *dir, const char *const *names)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && e->d_name[strspn(e->d_name, "0123456789")] != '\0' &&
		    !is_named(names, e->d_name) && shows(path)) {
			(void)fprintf(stderr, "%s\n", path);
			return 0;
		}
	}
	return -ENODATA;
}

static int more_in_proc(const struct check *c)
{
	static const char *const names[] = { "cpuinfo", "filesystems", "loadavg", "meminfo",
					     "mounts",	"net",	       "self",	  "stat",
					     "sys",	"sysvipc",     "uptime",  "thread-self",
					     "version", NULL };

	return finds_more(c->path, names);
}

static int more_knobs(const struct check *c)
{
	static const char *const names[] = { "crypto", "fs", "kernel", "net", "user", "vm", NULL };

	return finds_more(c->path, names);
}

/* Numbers that every sandbox changes: a sandbox that reads one hears the others. */
static int more_counters(const struct check *c)
{
	static const char *const names[] = { "/proc/sys/fs/file-nr",	  "/proc/sys/fs/inode-nr",
					     "/proc/sys/fs/dentry-state", "/proc/sys/fs/aio-nr",
					     "/proc/sys/fs/quota",	  "/proc/sys/kernel/pty/nr",
					     "/proc/sys/kernel/tainted",  NULL };

	(void)c;
	for (const char *const *n = names; *n; n++)
		if (shows(*n))
			return 0;
	return -ENODATA;
}

#define HIDDEN "ENODATA|" CLOSED
#define TELLS(name, where) \
	{ \
		"read-" name, "/proc/" name ", which tells of the host", run_read, where, \
			.lacks = "ENOENT", .dev = HIDDEN, .bare = HIDDEN, .path = "/proc/" name \
	}
#define LISTS(name, where) \
	{ \
		"list-" name, "/proc/" name ", which tells of the host", listed, where, \
			.lacks = "ENOENT|ENODATA", .dev = HIDDEN, .bare = HIDDEN, \
			.path = "/proc/" name \
	}
#define CHANGES(id, name, what, where) \
	{ \
		"write-" id, what, run_write_open, where, .lacks = "ENOENT", .dev = HIDDEN, \
							  .bare = HIDDEN, .path = "/proc/" name \
	}

/* clang-format off */
static const struct check checks[] = {
	TELLS("cmdline", PLAIN), TELLS("interrupts", PLAIN), TELLS("kallsyms", PLAIN), TELLS("key-users", PLAIN),
	TELLS("config.gz", PLAIN), TELLS("iomem", PLAIN), TELLS("ioports", PLAIN), TELLS("kpagecount", ROOT),
	TELLS("kpageflags", ROOT), TELLS("kpagecgroup", ROOT), TELLS("slabinfo", ROOT), TELLS("timer_list", ROOT),
	TELLS("vmallocinfo", ROOT), TELLS("pagetypeinfo", ROOT), TELLS("sched_debug", ROOT), TELLS("latency_stats", ROOT),
	TELLS("keys", PLAIN), TELLS("bootconfig", PLAIN),
	{ "read-kcore", "memory of the kernel", run_read, ROOT, .lacks = "ENOENT|EPERM", .dev = HIDDEN, .bare = HIDDEN, .path = "/proc/kcore" },
	{ "open-kmsg", "the kernel's log", run_open, ROOT, .lacks = "ENOENT", .dev = HIDDEN, .bare = HIDDEN, .path = "/proc/kmsg" },
	TELLS("locks", PLAIN), TELLS("diskstats", PLAIN), TELLS("partitions", PLAIN), TELLS("devices", PLAIN),
	TELLS("cgroups", PLAIN), TELLS("vmstat", PLAIN), TELLS("zoneinfo", PLAIN), TELLS("buddyinfo", PLAIN), TELLS("swaps", PLAIN),
	TELLS("softirqs", PLAIN), TELLS("modules", PLAIN), TELLS("crypto", PLAIN), TELLS("schedstat", PLAIN),
	LISTS("fs", PLAIN), LISTS("bus", PLAIN), LISTS("irq", PLAIN), LISTS("pressure", PLAIN), LISTS("tty", PLAIN),
	{ "more-in-proc", "an entry of /proc that is not on the list", more_in_proc, PLAIN, .dev = HIDDEN, .bare = HIDDEN, .path = "/proc" },
	{ "more-knobs", "a directory of /proc/sys that is not on the list", more_knobs, PLAIN, .dev = HIDDEN, .bare = HIDDEN, .path = "/proc/sys" },
	{ "more-counters", "what everybody's files and terminals add up to", more_counters, PLAIN, .dev = HIDDEN, .bare = HIDDEN },
	LISTS("acpi", PLAIN), LISTS("scsi", PLAIN), LISTS("asound", PLAIN), LISTS("driver", PLAIN), LISTS("dynamic_debug", PLAIN),
	CHANGES("core_pattern", "sys/kernel/core_pattern", "a helper that the kernel starts as root", ROOT),
	CHANGES("modprobe", "sys/kernel/modprobe", "another such helper", ROOT),
	CHANGES("hotplug", "sys/kernel/hotplug", "another such helper", ROOT),
	CHANGES("poweroff_cmd", "sys/kernel/poweroff_cmd", "another such helper", ROOT),
	CHANGES("usermodehelper", "sys/kernel/usermodehelper/bset", "rights of such helpers", ROOT),
	CHANGES("panic", "sys/kernel/panic", "what happens at a panic", ROOT),
	CHANGES("sysrq", "sys/kernel/sysrq", "keys for the kernel", ROOT),
	CHANGES("sysrq-trigger", "sysrq-trigger", "such keys pressed", ROOT),
	CHANGES("aslr", "sys/kernel/randomize_va_space", "addresses of everybody", ROOT),
	CHANGES("kptr", "sys/kernel/kptr_restrict", "addresses of the kernel", ROOT),
	CHANGES("pid_max", "sys/kernel/pid_max", "the number of processes", ROOT),
	CHANGES("threads-max", "sys/kernel/threads-max", "the number of threads", ROOT),
	CHANGES("hostname", "sys/kernel/hostname", "the host's name", ROOT),
	CHANGES("ns_last_pid", "sys/kernel/ns_last_pid", "the next process's number", NS),
	CHANGES("shmmax", "sys/kernel/shmmax", "limits of shared memory", NS),
	CHANGES("msg_max", "sys/fs/mqueue/msg_max", "limits of message queues", NS),
	CHANGES("max_user_namespaces", "sys/user/max_user_namespaces", "limits of namespaces", NS),
	CHANGES("max_inotify_watches", "sys/user/max_inotify_watches", "limits of watches", NS),
	CHANGES("ip_forward", "sys/net/ipv4/ip_forward", "forwarding", NS),
	CHANGES("unprivileged_ports", "sys/net/ipv4/ip_unprivileged_port_start", "ports of root", NS),
	CHANGES("ping_group", "sys/net/ipv4/ping_group_range", "who may ping", NS),
	CHANGES("ipv6", "sys/net/ipv6/conf/all/disable_ipv6", "the second protocol", NS),
	CHANGES("drop_caches", "sys/vm/drop_caches", "everybody's caches", ROOT),
	CHANGES("overcommit", "sys/vm/overcommit_memory", "memory that is not there", ROOT),
	CHANGES("panic_on_oom", "sys/vm/panic_on_oom", "a panic without memory", ROOT),
	CHANGES("nr_hugepages", "sys/vm/nr_hugepages", "memory taken from everybody", ROOT),
	CHANGES("file-max", "sys/fs/file-max", "open files of everybody", ROOT),
	CHANGES("suid_dumpable", "sys/fs/suid_dumpable", "memory of setuid programs", ROOT),
	CHANGES("protected_symlinks", "sys/fs/protected_symlinks", "a guard of /tmp", ROOT),
	CHANGES("binfmt_misc", "sys/fs/binfmt_misc/register", "interpreters for everybody", ROOT),
	CHANGES("irq", "irq/default_smp_affinity", "interrupts", ROOT),
	CHANGES("mtrr", "mtrr", "kinds of memory", ROOT),
};
/* clang-format on */

const struct topic proc_topic = { "proc", checks, sizeof checks / sizeof checks[0] };

#define SHOWN(name) \
	{ \
		"sys-" name, "/sys/" name ", which tells of the host", listed, PLAIN, \
			.lacks = "ENOENT|ENODATA", .dev = "ENOENT", .bare = "ENOENT", \
			.path = "/sys/" name \
	}
#define KNOB(id, name, what) \
	{ \
		"sys-" id, what, run_write_open, ROOT, .lacks = "ENOENT|EROFS", .dev = "ENOENT", \
						       .bare = "ENOENT", .path = "/sys/" name \
	}

/* The host's own group of this program. */
static int group_entered(const struct check *c)
{
	(void)c;
	return result(open(param("CGROUP_PROCS"), O_WRONLY | O_CLOEXEC));
}

/* clang-format off */
static const struct check sys_checks[] = {
	SHOWN("kernel"), SHOWN("devices/virtual"), SHOWN("devices/system/memory"), SHOWN("module"), SHOWN("class"), SHOWN("bus"), SHOWN("block"), SHOWN("firmware"),
	SHOWN("fs"), SHOWN("fs/cgroup"), SHOWN("power"), SHOWN("dev"), SHOWN("devices/system/cpu/vulnerabilities"), SHOWN("devices/system/cpu/cpufreq"), SHOWN("kernel/mm"),
	SHOWN("hypervisor"), SHOWN("fs/ext4"),
	KNOB("uevent_helper", "kernel/uevent_helper", "a helper that the kernel starts as root"),
	KNOB("power-state", "power/state", "sending the machine to sleep"),
	KNOB("ksm", "kernel/mm/ksm/run", "merged pages"),
	KNOB("cpu-online", "devices/system/cpu/cpu1/online", "CPUs of everybody"),
	KNOB("release_agent", "fs/cgroup/memory/release_agent", "a helper of the control groups"),
	KNOB("devices-allow", "fs/cgroup/devices/devices.allow", "devices of everybody"),
	{ "cgroup-procs", "out of its control group", group_entered, ROOT, .dev = "ENOENT", .bare = "ENOENT" },
};
/* clang-format on */

const struct topic sys_topic = { "sys", sys_checks, sizeof sys_checks / sizeof sys_checks[0] };
