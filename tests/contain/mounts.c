/* SPDX-License-Identifier: Apache-2.0 */
/* Around the mounts: new ones, others' uncovered, masks taken off. */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

/* From <sys/mount.h>, which does not go together with <linux/mount.h> everywhere. */
int mount(const char *from, const char *to, const char *kind, unsigned long flags,
	  const void *data);
int umount2(const char *path, int flags);

enum { DETACH = 2, RECURSIVE = 0x8000 };

/* c->path: file system; a[0]: flags */
static int fresh(const struct check *c)
{
	own_mounts();
	return result(mount("contain", "/tmp", c->path, c->a[0], (const void *)c->a[1]));
}

static int fresh_high_bits(const struct check *c)
{
	own_mounts();
	return result(syscall(SYS_mount | 1L << 32, "contain", "/tmp", c->path, 0L, 0L));
}

static int bound(const struct check *c)
{
	own_mounts();
	return result(mount(c->path, "/tmp", NULL, MS_BIND | c->a[0], NULL));
}

static int is_mounted(const char *path)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[1024];
	int found = 0;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%*s %*s %*s %*s %1023s", at) == 1 && strcmp(at, path) == 0)
			found = 1;
	return found;
}

/* Outside nothing is masked: a mask of our own, to see that it comes off there. */
static void stage(const struct check *c)
{
	own_mounts();
	if (is_mounted(c->path))
		return;
	if (mount(c->path, c->path, NULL, MS_BIND, NULL) == 0)
		(void)mount(NULL, c->path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
}

static int uncovered(const struct check *c)
{
	stage(c);
	return result(umount2(c->path, DETACH));
}

static int writable(const struct check *c)
{
	stage(c);
	return result(mount(NULL, c->path, NULL,
			    MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
}

static int writable_by_attr(const struct check *c)
{
	struct mount_attr a = { .attr_clr = MOUNT_ATTR_RDONLY };

	stage(c);
	return result(syscall(SYS_mount_setattr, AT_FDCWD, c->path, c->a[0], &a, sizeof a));
}

static int moved(const struct check *c)
{
	stage(c);
	if (strcmp(c->path, "/proc/sys") == 0)
		return result(mount(c->path, "/tmp", NULL, MS_MOVE, NULL));
	return result(syscall(SYS_move_mount, AT_FDCWD, c->path, AT_FDCWD, "/dev/null", 0L));
}

static int cloned(const struct check *c)
{
	own_mounts();
	return result(syscall(SYS_open_tree, AT_FDCWD, c->path, OPEN_TREE_CLONE | c->a[0]));
}

/* A file system by the newer calls, as far as they let us. */
static int fresh_by_parts(const struct check *c)
{
	long fs = syscall(SYS_fsopen, c->path, 0L);

	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return result(syscall(SYS_fsmount, fs, 0, 0));
}

static int changed_by_parts(const struct check *c)
{
	long fs = syscall(SYS_fspick, AT_FDCWD, c->path, 0L);

	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "rw", NULL, 0) < 0)
		return -errno;
	return result(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
}

static int shared(const struct check *c)
{
	own_mounts();
	return result(mount(NULL, "/", NULL, c->a[0], NULL));
}

static int pivoted(const struct check *c)
{
	(void)c;
	own_tmp();
	return result(syscall(SYS_pivot_root, ".", "."));
}

/* The old way out of a chroot. Through where "/etc" is another than before. */
static int left_upwards(const struct check *c)
{
	char now[4096];
	int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)c;
	own_tmp();
	(void)mkdirat(AT_FDCWD, "contain-jail", 0700);
	if (chroot("contain-jail") < 0)
		return -errno;
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			return -errno;
	(void)unlinkat(AT_FDCWD, "contain-jail", AT_REMOVEDIR);
	/* We are at the top again; further up there must be nothing. */
	if (syscall(SYS_getcwd, now, sizeof now) < 0 || faccessat(top, "..", F_OK, 0) < 0)
		return -errno;
	return result(faccessat(AT_FDCWD, param("HOST_VAR_FILE") + 1, F_OK, 0));
}

#define MASK "EINVAL|EPERM"

/* clang-format off */
static const struct check checks[] = {
	{ "mount-tmpfs", "a tmpfs", fresh, NS, .path = "tmpfs" },
	{ "mount-high-bits", "the same by a number with high bits", fresh_high_bits, NS, .path = "tmpfs" },
	{ "mount-proc", "a /proc without masks", fresh, NS, .bare = "EPERM", .path = "proc" },
	{ "mount-sysfs", "a /sys", fresh, NS, .bare = "EPERM", .path = "sysfs" },
	{ "mount-cgroup2", "the control groups", fresh, NS, .lacks = "EPERM", .bare = "EPERM", .path = "cgroup2" },
	{ "mount-mqueue", "message queues", fresh, NS, .lacks = "ENODEV", .bare = "EPERM", .path = "mqueue" },
	{ "mount-devpts", "terminals", fresh, NS, .path = "devpts" },
	{ "mount-bpf", "objects of bpf", fresh, NS, .lacks = "ENODEV|EPERM", .path = "bpf" },
	{ "mount-debugfs", "the kernel's debugging", fresh, ROOT, .lacks = "ENODEV|EPERM", .bare = "EPERM|ENODEV", .path = "debugfs" },
	{ "mount-tracefs", "the kernel's tracing", fresh, ROOT, .lacks = "ENODEV|EPERM", .bare = "EPERM|ENODEV", .path = "tracefs" },
	{ "mount-securityfs", "the security modules", fresh, ROOT, .lacks = "ENODEV", .bare = "EPERM|ENODEV", .path = "securityfs" },
	{ "mount-devtmpfs", "the host's devices", fresh, ROOT, .lacks = "ENODEV", .bare = "EPERM|ENODEV", .path = "devtmpfs" },
	{ "mount-bind", "one directory at another's place", bound, NS, .a = { MS_REC }, .path = "/usr" },
	{ "bind-under-masks", "/proc without what covers it", bound, NS, .bare = MASK, .path = "/proc" },
	{ "bind-under-root", "the root without what covers it", bound, ROOT, .bare = MASK, .path = "/" },
	{ "remount-proc-sys", "/proc/sys made writable", writable, NS, .bare = "EPERM", .path = "/proc/sys" },
	{ "remount-mask", "a mask made writable", writable, NS, .bare = "EPERM", .path = "/proc/kallsyms" },
	{ "umount-proc-sys", "/proc/sys uncovered", uncovered, NS, .bare = MASK, .path = "/proc/sys" },
	{ "umount-kcore", "memory uncovered", uncovered, NS, .lacks = "ENOENT", .bare = MASK "|ENOENT", .path = "/proc/kcore" },
	{ "umount-kallsyms", "the kernel's symbols uncovered", uncovered, NS, .bare = MASK, .path = "/proc/kallsyms" },
	{ "umount-sysrq", "sysrq uncovered", uncovered, NS, .lacks = "ENOENT", .bare = MASK "|ENOENT", .path = "/proc/sysrq-trigger" },
	{ "umount-proc", "/proc away", uncovered, NS, .bare = MASK, .path = "/proc" },
	{ "umount-dev", "/dev away", uncovered, ROOT, .bare = MASK, .path = "/dev" },
	{ "umount-sys", "/sys away", uncovered, ROOT, .bare = MASK, .path = "/sys" },
	{ "setattr-proc-sys", "/proc/sys writable, the newer way", writable_by_attr, NS, .bare = "EPERM", .path = "/proc/sys" },
	{ "setattr-all", "all mounts writable", writable_by_attr, ROOT, .bare = "EPERM", .a = { RECURSIVE }, .path = "/proc" },
	{ "move-proc-sys", "/proc/sys moved away", moved, NS, .bare = MASK, .path = "/proc/sys" },
	{ "move-mask", "a mask moved away", moved, NS, .bare = MASK, .path = "/proc/kallsyms" },
	{ "open_tree", "a copy of all mounts", cloned, NS, .a = { RECURSIVE }, .path = "/" },
	{ "open_tree-under-masks", "a copy of /proc without what covers it", cloned, NS, .bare = MASK, .path = "/proc" },
	{ "fsopen-tmpfs", "a tmpfs, by parts", fresh_by_parts, NS, .path = "tmpfs" },
	{ "fsopen-proc", "a /proc without masks, by parts", fresh_by_parts, NS, .bare = "EPERM", .path = "proc" },
	{ "fsopen-sysfs", "a /sys, by parts", fresh_by_parts, NS, .bare = "EPERM", .path = "sysfs" },
	{ "fspick-proc", "another kind of /proc", changed_by_parts, NS, .bare = "EPERM", .path = "/proc" },
	{ "fsconfig", "an option", run_call, PLAIN, .allowed = "EBADF|EINVAL", .nr = SYS_fsconfig, .a = { -1, FSCONFIG_CMD_CREATE } },
	{ "fsmount", "a file system made a mount", run_call, NS, .allowed = "EBADF", .nr = SYS_fsmount, .a = { -1 } },
	{ "share-mounts", "mounts that spread", shared, NS, .a = { MS_REC | MS_SHARED } },
	{ "pivot_root", "another root", pivoted, NS, .path = "/tmp" },
	{ "chroot-upwards", "out of a chroot, and on", left_upwards, ROOT, .dev = "EPERM", .root = "ENOENT|EACCES", .bare = "ENOENT|EACCES" },
};
/* clang-format on */

const struct topic mounts_topic = { "mounts", checks, sizeof checks / sizeof checks[0] };
