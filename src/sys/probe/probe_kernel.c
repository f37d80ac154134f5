/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_kernel.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

bool probe_release_parse(const char *release, int *ret_major, int *ret_minor)
{
	return sscanf(release, "%4d.%4d", ret_major, ret_minor) == 2;
}

void probe_kernel(struct probe_kernel *ret)
{
	struct utsname u;

	*ret = (struct probe_kernel){ 0 };
	if (uname(&u) < 0)
		return;
	(void)str_copy(ret->release, sizeof ret->release, str_of(u.release));
	(void)str_copy(ret->machine, sizeof ret->machine, str_of(u.machine));
	(void)probe_release_parse(u.release, &ret->major, &ret->minor);
}

void probe_status_parse(struct str text, struct probe_guard *g)
{
	struct str line;

	while (probe_line(&text, &line)) {
		char value[32] = "";
		struct str name = probe_until(&line, ':');

		while (line.n && (line.p[0] == '\t' || line.p[0] == ' '))
			line = (struct str){ line.p + 1, line.n - 1 };
		if (!str_copy(value, sizeof value, line))
			continue;
		if (str_is(name, "Seccomp"))
			g->seccomp = strtol(value, NULL, 10);
		if (str_is(name, "CapEff"))
			g->has_sys_admin = strtoull(value, NULL, 16) >> CAP_SYS_ADMIN & 1;
	}
}

/* In a chroot, the kernel refuses user namespaces: our root must be the mount namespace's root. */
static bool in_chroot(void)
{
	char root[64];
	ssize_t n = readlink("/proc/self/root", root, sizeof root);

	return n > 1;
}

void probe_guard(struct probe_guard *ret)
{
	auto_done(buf_done) struct buf status = BUF_INIT(64 * 1024);

	*ret = (struct probe_guard){
		.max_user_ns = probe_number("/proc/sys/user/max_user_namespaces"),
		.userns_clone = probe_number("/proc/sys/kernel/unprivileged_userns_clone"),
		.apparmor_restrict =
			probe_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.seccomp = -1,
		.container =
			access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0,
		.chroot = in_chroot(),
	};
	probe_text("/proc/self/attr/current", ret->apparmor, sizeof ret->apparmor);
	if (probe_file("/proc/self/status", &status))
		probe_status_parse(buf_str(&status), ret);
}
