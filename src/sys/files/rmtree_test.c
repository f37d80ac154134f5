/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "t.h"

enum { DEEP = 10000, NOBODY = 65534 };

static char scratch[64];

/*
 * Opens a new directory, which the test empties with the function under test. In memory if
 * possible: an ext4 without a journal checks every recently deleted inode before it makes a new
 * one, and takes seconds for thousands.
 */
static int scratch_open(void)
{
	int fd;

	t_scratch(scratch, sizeof scratch);
	fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void scratch_close(int fd)
{
	CHECK(close(fd) == 0);
	CHECK(rmdir(scratch) == 0);
}

static void put_file(int dirfd, const char *name)
{
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
}

static void put_dir(int dirfd, const char *name)
{
	CHECK(mkdirat(dirfd, name, 0700) == 0);
}

static bool there(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_tree_of_all_kinds_is_removed(void)
{
	int d = scratch_open();

	put_dir(d, "t");
	put_dir(d, "t/empty");
	put_dir(d, "t/full");
	put_file(d, "t/full/file");
	CHECK(mkfifoat(d, "t/full/fifo", 0600) == 0);
	CHECK(symlinkat("nowhere", d, "t/full/link") == 0);
	for (int i = 0; i < 3000; i++) {
		char name[32];

		snprintf(name, sizeof name, "t/full/%d", i);
		put_file(d, name);
	}
	CHECK(rmtree_at(d, "t") == 0);
	CHECK(!there(d, "t"));
	put_file(d, "f");
	CHECK(rmtree_at(d, "f") == 0);
	CHECK(!there(d, "f"));
	scratch_close(d);
}

static void a_missing_tree_is_no_failure(void)
{
	int d = scratch_open();

	CHECK(rmtree_at(d, "none") == 0);
	CHECK(rmtree_at(d, "none/below") == 0);
	scratch_close(d);
}

static void links_are_removed_and_not_followed(void)
{
	int d = scratch_open();

	put_dir(d, "keep");
	put_file(d, "keep/file");
	put_dir(d, "t");
	CHECK(symlinkat("../keep", d, "t/link") == 0);
	CHECK(symlinkat("keep", d, "toplink") == 0);
	CHECK(rmtree_at(d, "t") == 0);
	CHECK(rmtree_at(d, "toplink") == 0);
	CHECK(!there(d, "t") && !there(d, "toplink"));
	CHECK(there(d, "keep/file"));
	CHECK(rmtree_at(d, "keep") == 0);
	scratch_close(d);
}

/* Deeper than PATH_MAX, than the descriptor limit, and than a recursive walk could go. */
static void deep_tree_is_removed_with_few_descriptors(void)
{
	struct rlimit few = { 64, 64 };
	int d = scratch_open();
	int at = dup(d);

	for (int i = 0; i < DEEP; i++) {
		int next;

		put_dir(at, "d");
		if (i % 100 == 0)
			put_file(at, "f");
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(rmtree_at(d, "d") == 0);
	CHECK(!there(d, "d"));
	CHECK(rmtree_at(d, "f") == 0);
	scratch_close(d);
}

static void become_nobody(int d)
{
	CHECK(geteuid() != 0 || fchown(d, NOBODY, NOBODY) == 0);
	CHECK(geteuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
}

/* Overlay work directories have mode 000. */
static void own_directories_without_permissions_are_entered(void)
{
	int d = scratch_open();

	become_nobody(d);
	put_dir(d, "t");
	put_dir(d, "t/closed");
	put_file(d, "t/closed/file");
	put_dir(d, "t/readonly");
	put_dir(d, "t/readonly/sub");
	put_file(d, "t/readonly/sub/file");
	CHECK(fchmodat(d, "t/closed", 0, 0) == 0);
	CHECK(fchmodat(d, "t/readonly", 0500, 0) == 0);
	CHECK(fchmodat(d, "t", 0, 0) == 0);
	CHECK(rmtree_at(d, "t") == 0);
	CHECK(!there(d, "t"));
	/* The scratch directory's parent is sticky and not ours to remove from once we are nobody.
	 */
	scratch_close(d);
}

static void deep_closed_directories_are_removed(void)
{
	int d = scratch_open(), at;

	become_nobody(d);
	at = dup(d);
	for (int i = 0; i < 100; i++) {
		int next;

		put_dir(at, "d");
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		CHECK(i == 0 || fchmod(at, 0500) == 0);
		close(at);
		at = next;
	}
	close(at);
	CHECK(rmtree_at(d, "d") == 0);
	CHECK(!there(d, "d"));
	scratch_close(d);
}

static void first_failure_is_returned_and_the_rest_removed(void)
{
	int d = scratch_open();
	pid_t pid;
	int st;

	/* nobody's tree with a directory of root in it, which nobody cannot empty. */
	put_dir(d, "t");
	put_dir(d, "t/a");
	put_dir(d, "t/roots");
	put_file(d, "t/roots/file");
	put_dir(d, "t/z");
	put_file(d, "t/z/file");
	CHECK(fchownat(d, "t", NOBODY, NOBODY, 0) == 0);
	CHECK(fchownat(d, "t/z", NOBODY, NOBODY, 0) == 0);
	CHECK(fchmod(d, 0777) == 0);
	pid = fork();
	if (pid == 0) {
		become_nobody(d);
		_exit(rmtree_at(d, "t") == -EACCES ? 0 : 1);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(there(d, "t/roots/file"));
	CHECK(!there(d, "t/a") && !there(d, "t/z"));
	CHECK(rmtree_at(d, "t") == 0);
	scratch_close(d);
}

static void mounts_are_not_entered(void)
{
	int d;

	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	d = scratch_open();
	CHECK(fchdir(d) == 0);
	put_dir(d, "outside");
	put_file(d, "outside/keep");
	put_dir(d, "t");
	put_dir(d, "t/m");
	put_file(d, "t/file");
	put_dir(d, "m");
	/* On the same file system: st_dev alone would not show the mount. */
	CHECK(mount("outside", "t/m", NULL, MS_BIND, NULL) == 0);
	CHECK(mount("outside", "m", NULL, MS_BIND, NULL) == 0);
	CHECK(rmtree_at(d, "t") == -EXDEV);
	CHECK(rmtree_at(d, "m") == -EXDEV);
	CHECK(there(d, "outside/keep"));
	CHECK(!there(d, "t/file"));
	CHECK(umount("t/m") == 0 && umount("m") == 0);
	CHECK(rmtree_at(d, "t") == 0 && rmtree_at(d, "outside") == 0 && rmtree_at(d, "m") == 0);
	scratch_close(d);
}

static void nothing(void)
{
}

int main(void)
{
	struct t_case c[] = {
		T(a_tree_of_all_kinds_is_removed),
		T(a_missing_tree_is_no_failure),
		T(links_are_removed_and_not_followed),
		T(deep_tree_is_removed_with_few_descriptors),
		T(own_directories_without_permissions_are_entered),
		T(deep_closed_directories_are_removed),
		T(first_failure_is_returned_and_the_rest_removed),
		T(mounts_are_not_entered),
	};
	size_t n = sizeof c / sizeof c[0];

	if (geteuid() != 0) {
		c[n - 2] = (struct t_case){ "first_failure # SKIP needs root", nothing };
		c[n - 1] = (struct t_case){ "mounts_are_not_entered # SKIP needs root", nothing };
	}
	return t_run(c, n);
}
