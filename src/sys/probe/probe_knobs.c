/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_knobs.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/limits.h"

#define MODPROBE_D "/etc/modprobe.d"

/* The first line is a heading. */
bool probe_has_swap(struct str swaps)
{
	(void)probe_until(&swaps, '\n');
	return swaps.n > 0;
}

static bool is_kept_out(struct str modprobe, const char *name)
{
	struct str line;

	while (probe_line(&modprobe, &line))
		if (str_is(probe_until(&line, ' '), "install") &&
		    str_is(probe_until(&line, ' '), name) &&
		    (str_starts(line, STR("/bin/false")) || str_starts(line, STR("/bin/true"))))
			return true;
	return false;
}

void probe_risky_modules(struct str dep, struct str modprobe, char *out, size_t size)
{
	/*
	 * Any user can reach these through a socket, and each had a hole that wrote to foreign
	 * pages.
	 */
	static const char *const names[] = { "algif_aead", "algif_skcipher", "esp4", "esp6",
					     "rxrpc" };
	char file[64];
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int n = snprintf(file, sizeof file, "/%s.ko", names[i]);

		if (!dep.n || !memmem(dep.p, dep.n, file, (size_t)n) ||
		    is_kept_out(modprobe, names[i]))
			continue;
		n = snprintf(out + at, size - at, "%s%s", at ? " " : "", names[i]);
		if (n < 0 || (size_t)n >= size - at)
			return;
		at += (size_t)n;
	}
}

static void read_modprobe(struct buf *b)
{
	DIR *d = opendir(MODPROBE_D);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[LIMIT_PATH];

		(void)snprintf(path, sizeof path, MODPROBE_D "/%s", e->d_name);
		if (e->d_name[0] != '.' && probe_file(path, b) && buf_add_c(b, "\n") < 0)
			break;
	}
	if (d)
		(void)closedir(d);
}

static void look_at_modules(struct probe_knobs *ret, const char *release)
{
	auto_done(buf_done) struct buf dep = BUF_INIT(PROBE_TEXT_MAX);
	auto_done(buf_done) struct buf conf = BUF_INIT(PROBE_TEXT_MAX);
	char path[LIMIT_PATH];

	if (probe_number("/proc/sys/kernel/modules_disabled") != 0)
		return;
	(void)snprintf(path, sizeof path, "/lib/modules/%s/modules.dep", release);
	if (!probe_file(path, &dep))
		return;
	read_modprobe(&conf);
	probe_risky_modules(buf_str(&dep), buf_str(&conf), ret->modules, sizeof ret->modules);
}

/* "|/program %p", "@/socket" or "@@/socket" (Linux 6.16); anything else names a file. */
void probe_core(const char *pattern, struct probe_knobs *ret)
{
	size_t mark = pattern[0] == '|' ? 1 : strspn(pattern, "@");

	ret->core_socket = pattern[0] == '@';
	if (mark)
		(void)str_copy(ret->core_helper, sizeof ret->core_helper,
			       (struct str){ pattern + mark, strcspn(pattern + mark, " ") });
}

void probe_knobs(struct probe_knobs *ret, const char *release)
{
	auto_done(buf_done) struct buf swaps = BUF_INIT(PROBE_TEXT_MAX);
	char core[sizeof ret->core_helper];

	*ret = (struct probe_knobs){
		.dmesg_restrict = probe_number("/proc/sys/kernel/dmesg_restrict"),
		.ptrace_scope = probe_number("/proc/sys/kernel/yama/ptrace_scope"),
		.bpf_disabled = probe_number("/proc/sys/kernel/unprivileged_bpf_disabled"),
		.io_uring_disabled = probe_number("/proc/sys/kernel/io_uring_disabled"),
		.tiocsti = probe_number("/proc/sys/dev/tty/legacy_tiocsti"),
		.ksm = probe_number("/sys/kernel/mm/ksm/run"),
	};
	ret->swap = probe_file("/proc/swaps", &swaps) && probe_has_swap(buf_str(&swaps));
	probe_text("/proc/sys/kernel/core_pattern", core, sizeof core);
	probe_core(core, ret);
	look_at_modules(ret, release);
}

static uint64_t hard_limit(int resource)
{
	struct rlimit r;

	if (getrlimit(resource, &r) < 0 || r.rlim_max == RLIM_INFINITY)
		return UINT64_MAX;
	return r.rlim_max;
}

void probe_limits(struct probe_limits *ret)
{
	struct sysinfo s = { 0 };

	(void)sysinfo(&s);
	*ret = (struct probe_limits){
		.files = hard_limit(RLIMIT_NOFILE),
		.core = hard_limit(RLIMIT_CORE),
		.processes = hard_limit(RLIMIT_NPROC),
		.inotify_watches = probe_number("/proc/sys/fs/inotify/max_user_watches"),
		.inotify_instances = probe_number("/proc/sys/fs/inotify/max_user_instances"),
		.pid_max = probe_number("/proc/sys/kernel/pid_max"),
		.net_namespaces = probe_number("/proc/sys/user/max_net_namespaces"),
		.memory_bytes = (uint64_t)s.totalram * s.mem_unit,
	};
}
