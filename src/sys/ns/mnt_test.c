/* SPDX-License-Identifier: Apache-2.0 */
/* Each test mounts in its own user and mount namespaces, below a tmpfs on /tmp. */
#include "sys/ns/mnt.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "sys/process/raw.h"
#include "t_ns.h"

static int tmp;

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void put_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && close(fd) == 0);
}

static void begin(void)
{
	t_own_namespaces(0);
	CHECK(mount("t", "/tmp", "tmpfs", 0, NULL) == 0);
	tmp = open_dir("/tmp");
	CHECK(mkdir("/tmp/a", 0755) == 0 && mkdir("/tmp/b", 0755) == 0);
	put_file("/tmp/a/f");
}

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool is_read_only(const char *path)
{
	return access(path, W_OK) < 0 && errno == EROFS;
}

static void a_new_file_system_has_its_options_and_attributes(void)
{
	const struct mnt_opt opts[] = { { "size", "64k" }, { "mode", "0711" }, { 0 } };
	struct statvfs vfs;
	struct stat st;
	int fd;

	begin();
	fd = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_RDONLY);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fstatvfs(fd, &vfs) == 0 && vfs.f_blocks * vfs.f_frsize == 64 * 1024);
	CHECK(vfs.f_flag & ST_RDONLY && vfs.f_flag & ST_NOSUID && vfs.f_flag & ST_NODEV);
	CHECK(!(vfs.f_flag & ST_NOEXEC));
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0711);
}

static void unknown_file_systems_and_options_are_refused(void)
{
	const struct mnt_opt bad[] = { { "nonsense", "1" }, { 0 } };
	const struct mnt_opt flag[] = { { "size", NULL }, { 0 } };

	begin();
	CHECK(mnt_new("nonsense", NULL, 0) == -ENODEV);
	CHECK(mnt_new("tmpfs", bad, 0) == -EINVAL && mnt_new("tmpfs", flag, 0) == -EINVAL);
	CHECK(mnt_bind_path("/tmp/none", 0, 0, FD_NONE) == -ENOENT);
}

static void a_mount_is_visible_only_after_attaching(void)
{
	int fd;

	begin();
	fd = mnt_new("tmpfs", NULL, 0);
	CHECK(fd >= 0 && mkdirat(fd, "inside", 0755) == 0);
	CHECK(!there("/tmp/b/inside"));
	CHECK(mnt_attach_at(fd, tmp, "b") == 0);
	CHECK(there("/tmp/b/inside"));
}

static void a_bind_has_attributes_of_its_own(void)
{
	int fd;

	begin();
	fd = mnt_bind_path("/tmp/a", RAW_ATTR_RDONLY, 0, FD_NONE);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && mnt_attach_at(fd, tmp, "b") == 0);
	CHECK(is_read_only("/tmp/b/f") && mkdir("/tmp/b/x", 0755) < 0 && errno == EROFS);
	CHECK(mkdir("/tmp/a/x", 0755) == 0 && there("/tmp/b/x"));
}

static void a_recursive_bind_includes_mounts_below(void)
{
	int a, one, all;

	begin();
	CHECK(mkdir("/tmp/a/sub", 0755) == 0 && mkdir("/tmp/c", 0755) == 0);
	CHECK(mount("t", "/tmp/a/sub", "tmpfs", 0, NULL) == 0);
	put_file("/tmp/a/sub/f");
	a = open_dir("/tmp/a");
	one = mnt_bind(a, RAW_ATTR_RDONLY, 0, FD_NONE);
	all = mnt_bind(a, RAW_ATTR_RDONLY, 1, FD_NONE);
	CHECK(one >= 0 && all >= 0);
	CHECK(mnt_attach_at(one, tmp, "b") == 0 && mnt_attach_at(all, tmp, "c") == 0);
	CHECK(there("/tmp/b/f") && !there("/tmp/b/sub/f"));
	CHECK(there("/tmp/c/sub/f") && is_read_only("/tmp/c/sub/f"));
	CHECK(!is_read_only("/tmp/a/sub/f"));
}

static void a_file_can_be_bound_over_a_file(void)
{
	int fd, target;

	begin();
	put_file("/tmp/target");
	CHECK(truncate("/tmp/a/f", 7) == 0);
	fd = mnt_bind_path("/tmp/a/f", 0, 0, FD_NONE);
	target = open("/tmp/target", O_PATH | O_CLOEXEC);
	CHECK(fd >= 0 && target >= 0 && mnt_attach(fd, target) == 0);
	{
		struct stat st;

		CHECK(stat("/tmp/target", &st) == 0 && st.st_size == 7);
	}
}

static void a_link_at_the_mount_point_is_not_followed(void)
{
	int fd;

	begin();
	CHECK(symlink("/tmp/b", "/tmp/link") == 0);
	fd = mnt_bind_path("/tmp/a", 0, 0, FD_NONE);
	CHECK(fd >= 0 && mnt_attach_at(fd, tmp, "link") < 0);
	CHECK(!there("/tmp/b/f"));
	CHECK(mnt_attach_at(fd, tmp, "none") == -ENOENT);
}

static void private_mounts_do_not_reach_the_namespace_they_came_from(void)
{
	pid_t pid;
	int st;

	begin();
	CHECK(mount(NULL, "/tmp", NULL, MS_SHARED, NULL) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(unshare(CLONE_NEWNS) == 0 && mnt_make_private() == 0);
		CHECK(mount("t", "/tmp/b", "tmpfs", 0, NULL) == 0);
		put_file("/tmp/b/hidden");
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(mount("t", "/tmp/a", "tmpfs", 0, NULL) == 0); /* the same file system is still here */
	CHECK(!there("/tmp/b/hidden"));
	pid = fork();
	if (pid == 0) {
		CHECK(unshare(CLONE_NEWNS) == 0);
		CHECK(mount("t", "/tmp/b", "tmpfs", 0, NULL) == 0);
		put_file("/tmp/b/shown");
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(there("/tmp/b/shown"));
}

static void pivot_leaves_nothing_of_the_old_root(void)
{
	int fd;

	begin();
	fd = mnt_bind_path("/tmp/a", 0, 0, FD_NONE);
	CHECK(fd >= 0 && mnt_attach_at(fd, tmp, "b") == 0);
	CHECK(mnt_pivot(fd) == 0);
	CHECK(there("/f") && !there("/tmp") && !there("/etc") && !there("/proc"));
	CHECK(there("/../../f") && chdir("..") == 0 && there("f"));
	CHECK(mnt_pivot(tmp) < 0);
	_exit(0); /* the sanitizers' final check needs a /proc */
}

static void an_id_map_changes_who_owns_what(void)
{
	const struct idmap map[] = { { 1000, 0, 1 }, { 0, 1000, 1 } };
	struct stat st;
	int fd, ns;

	t_needs_root();
	CHECK(unshare(CLONE_NEWNS) == 0 && mnt_make_private() == 0);
	CHECK(mount("t", "/tmp", "tmpfs", 0, NULL) == 0 && mkdir("/tmp/b", 0755) == 0);
	put_file("/tmp/f");
	CHECK(chown("/tmp/f", 1000, 1000) == 0);
	ns = userns_new(map, 2);
	fd = mnt_bind_path("/tmp", 0, 0, ns);
	if (fd == -EINVAL)
		t_skip("this kernel cannot map ids of tmpfs (Linux 6.3)");
	CHECK(ns >= 0 && fd >= 0 && fstatat(fd, "f", &st, 0) == 0 && st.st_uid == 0);
	CHECK(fstatat(fd, "b", &st, 0) == 0 && st.st_uid == 1000 && st.st_gid == 1000);
}

static void a_sealed_file_system_is_read_only_for_existing_mounts(void)
{
	int fd, kept, file;

	begin();
	fd = mnt_new("tmpfs", NULL, 0);
	CHECK(fd >= 0 && mnt_attach_at(fd, tmp, "b") == 0);
	kept = open("/tmp/b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = openat(kept, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(kept >= 0 && file >= 0);
	CHECK(umount2("/tmp/b", MNT_DETACH) == 0);
	CHECK(mnt_seal(fd) == -EBUSY);
	CHECK(write(file, "x", 1) == 1 && close(file) == 0);
	CHECK(mnt_seal(fd) == 0);
	CHECK(openat(kept, "f", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
	CHECK(mkdirat(kept, "d", 0700) < 0 && errno == EROFS);
}

T_MAIN(T(a_new_file_system_has_its_options_and_attributes),
       T(unknown_file_systems_and_options_are_refused), T(a_mount_is_visible_only_after_attaching),
       T(a_bind_has_attributes_of_its_own), T(a_recursive_bind_includes_mounts_below),
       T(a_file_can_be_bound_over_a_file), T(a_link_at_the_mount_point_is_not_followed),
       T(private_mounts_do_not_reach_the_namespace_they_came_from),
       T(pivot_leaves_nothing_of_the_old_root), T(an_id_map_changes_who_owns_what),
       T(a_sealed_file_system_is_read_only_for_existing_mounts))
