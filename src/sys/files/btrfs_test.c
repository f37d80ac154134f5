/* SPDX-License-Identifier: Apache-2.0 */
/* On a small file system in a file: needs root, loop devices and mkfs.btrfs. */
#include "sys/files/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/files/loopdev.h"
#include "sys/ns/mnt.h"
#include "t_ns.h"

enum { MIB = 1 << 20 };

static int pool = FD_NONE;

static void run_mkfs(const char *file)
{
	char *argv[] = { "mkfs.btrfs", "-q", (char *)file, NULL };
	char *envp[] = { "PATH=/usr/sbin:/sbin:/usr/bin:/bin", NULL };
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int st, r;

	CHECK(posix_spawn_file_actions_init(&quiet) == 0);
	CHECK(posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) == 0);
	r = posix_spawnp(&pid, "mkfs.btrfs", &quiet, NULL, argv, envp);
	CHECK(posix_spawn_file_actions_destroy(&quiet) == 0);
	if (r == ENOENT)
		t_skip("needs mkfs.btrfs (package btrfs-progs)");
	CHECK(r == 0 && waitpid(pid, &st, 0) == pid && st == 0);
}

/* Mounted in the test's own namespace: the mount and the loop device go with it. */
static void begin(void)
{
	char file[] = "/tmp/btrfs-test-XXXXXX", dir[] = "/tmp/btrfs-mount-XXXXXX", device[32];
	int fd = FD_NONE, loop;

	t_needs_root();
	fd = mkstemp(file);
	CHECK(fd >= 0 && ftruncate(fd, 256 * MIB) == 0 && mkdtemp(dir));
	run_mkfs(file);
	CHECK(unlink(file) == 0);
	loop = loopdev_attach(fd, device, sizeof device);
	if (loop < 0)
		t_skip("needs a loop device");
	CHECK(unshare(CLONE_NEWNS) == 0 && mnt_make_private() == 0);
	if (mount(device, dir, "btrfs", 0, "") < 0) {
		(void)rmdir(dir);
		t_skip("this kernel has no btrfs");
	}
	pool = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(pool >= 0 && umount2(dir, MNT_DETACH) == 0 && rmdir(dir) == 0);
	CHECK(close(loop) == 0 && close(fd) == 0);
}

static int open_sub(const char *name)
{
	int fd = openat(pool, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* Writes until it fails. Returns the errno and the number of bytes. */
static int fill(int dirfd, const char *name, size_t *ret)
{
	static char block[65536];
	int fd = openat(dirfd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ssize_t n;

	CHECK(fd >= 0);
	for (*ret = 0; *ret < 200 * MIB; *ret += (size_t)n) {
		n = write(fd, block, sizeof block);
		if (n < 0)
			return errno;
	}
	return 0;
}

static void a_subvolume_is_made_and_removed_with_its_content(void)
{
	int sub;

	begin();
	CHECK(btrfs_is(pool) && btrfs_subvolume(pool, "a") == 0);
	CHECK(btrfs_subvolume(pool, "a") == -EEXIST);
	sub = open_sub("a");
	CHECK(btrfs_is_subvolume(sub) && mkdirat(sub, "d", 0755) == 0);
	CHECK(!btrfs_is_subvolume(openat(sub, "d", O_RDONLY | O_CLOEXEC)));
	CHECK(symlinkat("x", sub, "d/l") == 0);
	CHECK(btrfs_delete(pool, "a") == 0);
	CHECK(btrfs_delete(pool, "a") == -ENOENT);
}

static void names_of_several_components_are_refused(void)
{
	begin();
	CHECK(btrfs_subvolume(pool, "") == -EINVAL && btrfs_subvolume(pool, "..") == -EINVAL);
	CHECK(btrfs_subvolume(pool, "a/b") == -EINVAL && btrfs_delete(pool, "../x") == -EINVAL);
}

static void a_snapshot_holds_the_content_and_is_independent(void)
{
	int a, b, file;
	struct stat st;

	begin();
	CHECK(btrfs_subvolume(pool, "a") == 0);
	a = open_sub("a");
	file = openat(a, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(file >= 0 && write(file, "one", 3) == 3);
	CHECK(btrfs_snapshot(a, pool, "b", false) == 0);
	CHECK(btrfs_snapshot(a, pool, "frozen", true) == 0);
	CHECK(write(file, "two", 3) == 3);
	b = open_sub("b");
	CHECK(fstatat(b, "f", &st, 0) == 0 && st.st_size == 3);
	CHECK(mkdirat(b, "new", 0755) == 0 && fstatat(a, "new", &st, 0) < 0);
	CHECK(mkdirat(open_sub("frozen"), "new", 0755) < 0 && errno == EROFS);
}

static void a_limit_stops_data_with_edquot(enum btrfs_quota kind)
{
	uint64_t id;
	size_t bytes;
	struct btrfs_usage u;
	int sub, r;

	begin();
	CHECK(btrfs_quota_is_on(pool) == 0);
	r = btrfs_quota_enable(pool, kind);
	if (r == -EOPNOTSUPP)
		t_skip("this kernel has no simple quotas");
	CHECK(r == 0 && btrfs_quota_is_on(pool) == 1 && btrfs_quota_enable(pool, kind) == 0);
	CHECK(btrfs_subvolume(pool, "a") == 0);
	sub = open_sub("a");
	CHECK(btrfs_id(sub, &id) == 0 && id >= 256 && btrfs_limit(pool, id, 16 * MIB) == 0);
	CHECK(fill(sub, "big", &bytes) == EDQUOT);
	CHECK(bytes > 12 * MIB && bytes <= 16 * MIB);
	CHECK(syncfs(pool) == 0 && btrfs_usage(pool, id, &u) == 0);
	CHECK(u.max == 16 * MIB && u.bytes > 12 * MIB && u.bytes <= 16 * MIB);
	CHECK(btrfs_limit(pool, id, 0) == 0 && btrfs_usage(pool, id, &u) == 0 && u.max == 0);
}

static void full_quota_stops_data_with_edquot(void)
{
	a_limit_stops_data_with_edquot(BTRFS_QUOTA_FULL);
}

static void simple_quota_stops_data_with_edquot(void)
{
	a_limit_stops_data_with_edquot(BTRFS_QUOTA_SIMPLE);
}

static void a_limit_stops_empty_files_too(void)
{
	uint64_t id;
	int sub, i = 0;
	char name[24];

	begin();
	CHECK(btrfs_quota_enable(pool, BTRFS_QUOTA_FULL) == 0 && btrfs_subvolume(pool, "a") == 0);
	sub = open_sub("a");
	CHECK(btrfs_id(sub, &id) == 0 && btrfs_limit(pool, id, MIB) == 0);
	for (;; i++) {
		(void)snprintf(name, sizeof name, "%d", i);
		if (mknodat(sub, name, S_IFREG | 0600, 0) < 0)
			break;
		CHECK(i < 100000);
	}
	CHECK(errno == EDQUOT && i > 10);
}

static void only_quota_groups_of_deleted_subvolumes_are_removed(void)
{
	struct btrfs_ioctl_qgroup_create_args made = { .create = 1, .qgroupid = 4711 };
	struct btrfs_usage u;
	uint64_t id = 0;
	int sub;

	begin();
	CHECK(btrfs_forget_gone(pool) == 0); /* no quota, no groups */
	CHECK(btrfs_quota_enable(pool, BTRFS_QUOTA_FULL) == 0);
	for (int i = 0; i < 40; i++) { /* more than one batch */
		char name[8];

		(void)snprintf(name, sizeof name, "%d", i);
		CHECK(btrfs_subvolume(pool, name) == 0);
	}
	sub = open_sub("39");
	CHECK(btrfs_id(sub, &id) == 0);
	CHECK(btrfs_forget_gone(pool) == 0 && btrfs_usage(pool, id, &u) == 0);
	/*
	 * Newer kernels refuse to create an unused group, and remove the groups of deleted
	 * subvolumes.
	 */
	if (ioctl(pool, BTRFS_IOC_QGROUP_CREATE, &made) < 0)
		t_skip("this kernel keeps no such groups");
	CHECK(btrfs_forget_gone(pool) == 1);
	CHECK(btrfs_usage(pool, 4711, &u) == -ENOENT && btrfs_usage(pool, id, &u) == 0);
}

T_MAIN(T(a_subvolume_is_made_and_removed_with_its_content),
       T(names_of_several_components_are_refused),
       T(a_snapshot_holds_the_content_and_is_independent), T(full_quota_stops_data_with_edquot),
       T(simple_quota_stops_data_with_edquot), T(a_limit_stops_empty_files_too),
       T(only_quota_groups_of_deleted_subvolumes_are_removed))
