/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/freeze/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/io.h"
#include "t.h"

/* A directory `from`, with copies beside it. */
static int from_fd;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && close(fd) == 0);
}

static void go_to_new_dir(void)
{
	char name[] = "/tmp/freeze-XXXXXX";

	(void)umask(0);
	CHECK(mkdtemp(name) && chdir(name) == 0 && mkdir("from", 0755) == 0);
	from_fd = open("from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(from_fd >= 0);
}

static struct freeze plain(void)
{
	return (struct freeze){ .from_fd = from_fd, .last_fd = FD_NONE, .workers = 2 };
}

static void copy_to(const struct freeze *f, const char *name, struct frozen_index *index,
		    struct freeze_result *ret)
{
	auto_close int to = FD_NONE;
	auto_done(frozen_index_done) struct frozen_index made = FROZEN_INDEX_INIT;
	char file[64];

	CHECK(mkdir(name, 0700) == 0);
	to = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(freeze_copy(f, to, &made, ret) == 0);
	(void)snprintf(file, sizeof file, "%s.index", name);
	CHECK(frozen_index_write(&made, AT_FDCWD, file) == 0);
	CHECK(frozen_index_read(index, AT_FDCWD, file) == 0);
}

static bool same(const char *a, const char *b)
{
	char command[256];

	(void)snprintf(
		command, sizeof command,
		"a=$(cd %s && find . -printf '%%p %%y %%m %%T@ %%l\\n' | sort; cd %s && find . "
		"-type f -exec cat {} + | cksum); "
		"b=$(cd %s && find . -printf '%%p %%y %%m %%T@ %%l\\n' | sort; cd %s && find . "
		"-type f -exec cat {} + | cksum); diff -r %s %s && [ \"$a\" = \"$b\" ]",
		a, ".", b, ".", a, b);
	return system(command) == 0;
}

static void everything_of_a_file_is_kept(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;
	struct stat a, b;
	int fd;

	go_to_new_dir();
	f.from_fd = from_fd;
	put("from/text", "one");
	CHECK(chmod("from/text", 0640) == 0 && mkdir("from/sub", 0711) == 0);
	CHECK(link("from/text", "from/sub/twin") == 0 && symlink("../text", "from/sub/link") == 0);
	CHECK(mkfifo("from/fifo", 0600) == 0 && mkdir("from/empty", 0500) == 0);
	CHECK(setxattr("from/text", "user.k", "v", 1, 0) == 0 || errno == ENOTSUP);
	fd = open("from/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(ftruncate(fd, 8 << 20) == 0 && pwrite(fd, "x", 1, 4 << 20) == 1 && close(fd) == 0);
	copy_to(&f, "to", &x, &r);
	CHECK(r.left_out.n == 0 && r.unsteady.n == 0 && r.linked == 0);
	CHECK(unlink("from/fifo") == 0 && unlink("to/fifo") == 0); /* diff would block on it */
	CHECK(stat("to/text", &a) == 0 && stat("to/sub/twin", &b) == 0 && a.st_ino == b.st_ino);
	CHECK(a.st_nlink == 2 && stat("to/sparse", &b) == 0 && b.st_blocks < 1024);
	CHECK(stat("from", &a) == 0 &&
	      utimensat(AT_FDCWD, "to", (struct timespec[]){ a.st_atim, a.st_mtim }, 0) == 0);
	CHECK(same("from", "to"));
}

static void an_unchanged_directory_is_recognised(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;
	struct timespec t[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

	go_to_new_dir();
	f.from_fd = from_fd;
	put("from/a", "one");
	CHECK(mkdir("from/d", 0755) == 0);
	put("from/d/b", "two");
	CHECK(utimensat(AT_FDCWD, "from/a", t, 0) == 0);
	copy_to(&f, "to", &x, &r);
	f.last = &x;
	f.last_fd = open("to", O_PATH | O_CLOEXEC);
	CHECK(freeze_is_same(&f) == 1);
	/* Same size, and with its mtime set back. */
	put("from/a", "eno");
	CHECK(utimensat(AT_FDCWD, "from/a", t, 0) == 0);
	CHECK(freeze_is_same(&f) == 0);
}

static void one_more_name_or_one_less_is_a_change(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;

	go_to_new_dir();
	f.from_fd = from_fd;
	put("from/a", "one");
	put("from/b", "two");
	copy_to(&f, "to", &x, &r);
	f.last = &x;
	CHECK(freeze_is_same(&f) == 1);
	CHECK(unlink("from/b") == 0 && freeze_is_same(&f) == 0);
	put("from/b", "two");
	CHECK(freeze_is_same(&f) == 0);
}

static void the_next_copy_links_what_is_unchanged(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT,
							 y = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;
	struct stat a, b;

	go_to_new_dir();
	f.from_fd = from_fd;
	put("from/kept", "one");
	put("from/changed", "two");
	copy_to(&f, "to", &x, &r);
	put("from/changed", "TWO");
	f.last = &x;
	f.last_fd = open("to", O_PATH | O_CLOEXEC);
	copy_to(&f, "again", &y, &r);
	CHECK(r.linked == 1 && r.copied == 1);
	CHECK(stat("to/kept", &a) == 0 && stat("again/kept", &b) == 0 && a.st_ino == b.st_ino);
	CHECK(stat("to/changed", &a) == 0 && stat("again/changed", &b) == 0 &&
	      a.st_ino != b.st_ino);
	CHECK(system("[ $(cat to/changed again/changed) = twoTWO ]") == 0);
}

/* By inode and ctime alone, the files of both would pass for the previous ones. */
static void directories_that_change_places_are_noticed(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT,
							 y = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;

	go_to_new_dir();
	f.from_fd = from_fd;
	CHECK(mkdir("from/a", 0755) == 0 && mkdir("from/b", 0755) == 0);
	put("from/a/f", "in a");
	put("from/b/f", "in b");
	copy_to(&f, "to", &x, &r);
	CHECK(rename("from/a", "from/c") == 0 && rename("from/b", "from/a") == 0);
	CHECK(rename("from/c", "from/b") == 0);
	f.last = &x;
	f.last_fd = open("to", O_PATH | O_CLOEXEC);
	CHECK(freeze_is_same(&f) == 0);
	copy_to(&f, "again", &y, &r);
	CHECK(system("[ \"$(cat again/a/f again/b/f)\" = 'in bin a' ]") == 0);
}

static atomic_bool begun, stop;

static void *write_on(void *arg)
{
	int fd = open("from/log", O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)arg;
	for (; !stop; begun = true)
		CHECK(write(fd, "0123456789abcdef", 16) == 16);
	(void)close(fd);
	return NULL;
}

static void a_file_that_never_stands_still_is_told(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;
	struct frozen_key k;
	pthread_t t;

	go_to_new_dir();
	f.from_fd = from_fd;
	CHECK(system("dd if=/dev/zero of=from/log bs=1M count=32 2>/dev/null") == 0);
	CHECK(pthread_create(&t, NULL, write_on, NULL) == 0);
	while (!begun)
		(void)sched_yield();
	copy_to(&f, "to", &x, &r);
	stop = true;
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(r.unsteady.n == 1);
	CHECK_STR(r.unsteady.first, "log");
	CHECK(frozen_index_find(&x, "log", &k) && k.nlink == 0);
}

static void what_may_not_be_read_is_left_out_and_told(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;

	go_to_new_dir();
	f.from_fd = from_fd;
	put("from/open", "one");
	put("from/closed", "two");
	CHECK(chmod("from/closed", 0) == 0 && mkdir("from/dir", 0) == 0);
	if (geteuid() == 0)
		CHECK(chmod(".", 0777) == 0 && setuid(65534) == 0);
	copy_to(&f, "to", &x, &r);
	CHECK(r.left_out.n == 2 && r.left_out.err == EACCES);
	CHECK(access("to/open", R_OK) == 0 && access("to/closed", F_OK) < 0);
}

static void a_full_disk_is_an_error(void)
{
	auto_done(frozen_index_done) struct frozen_index x = FROZEN_INDEX_INIT;
	struct freeze f = plain();
	struct freeze_result r;
	auto_close int to = FD_NONE;

	go_to_new_dir();
	f.from_fd = from_fd;
	CHECK(system("dd if=/dev/zero of=from/big bs=1M count=4 2>/dev/null; mkdir to; "
		     "mount -t tmpfs -o size=1M none to 2>/dev/null") >= 0);
	to = open("to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (system("mountpoint -q to") != 0)
		return; /* only root can make a small disk */
	CHECK(freeze_copy(&f, to, &x, &r) == -ENOSPC);
	CHECK_STR(r.where, "big");
	fd_close(&to);
	CHECK(system("umount to") == 0);
}

T_MAIN(T(everything_of_a_file_is_kept), T(an_unchanged_directory_is_recognised),
       T(one_more_name_or_one_less_is_a_change), T(the_next_copy_links_what_is_unchanged),
       T(directories_that_change_places_are_noticed), T(a_file_that_never_stands_still_is_told),
       T(what_may_not_be_read_is_left_out_and_told), T(a_full_disk_is_an_error))
