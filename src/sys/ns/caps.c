/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(c) (1ull << (c))

enum { CAPS_POSSIBLE = 64 };

const uint64_t caps_root_inside =
	BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) |
	BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_SETFCAP) |
	BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_AUDIT_WRITE);

static int clear_ambient(void)
{
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

int caps_bound(uint64_t keep)
{
	for (int c = 0; c < CAPS_POSSIBLE; c++) {
		if (keep & BIT(c))
			continue;
		/* EINVAL: this kernel has no capability with this number or a higher one. */
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return errno == EINVAL ? clear_ambient() : -errno;
	}
	return clear_ambient();
}

static int write_caps(uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++, permitted >>= 32, inheritable >>= 32)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)permitted,
			.permitted = (uint32_t)permitted,
			.inheritable = (uint32_t)inheritable,
		};
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_set(uint64_t set)
{
	int r = clear_ambient();

	return r < 0 ? r : write_caps(set, 0);
}

uint64_t caps_now(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

int caps_use(uint64_t set)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++, set >>= 32)
		data[i].effective = (uint32_t)set & data[i].permitted;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_files_as(uid_t uid, gid_t gid)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	/* setfsuid() reports no failure, only the previous value. */
	if ((uid_t)setfsuid(uid) != uid || (gid_t)setfsgid(gid) != gid)
		return -EPERM;
	/*
	 * When root drops these ids, the kernel removes file capabilities from the effective set.
	 * Put them back.
	 */
	return write_caps(caps_now(), 0);
}

int caps_keep_over_exec(void)
{
	uint64_t all = caps_now();
	int r = write_caps(all, all);

	for (int c = 0; c < CAPS_POSSIBLE && r == 0; c++)
		if (all & BIT(c) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) < 0)
			r = -errno;
	return r;
}
