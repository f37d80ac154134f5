/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "t.h"

/* Enter a temporary directory; the test removes it at its end. */
static char dir[] = "/tmp/cay-io-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static void leave(void)
{
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void enter(void)
{
	CHECK(mkdtemp(dir) && chdir(dir) == 0);
	CHECK(atexit(leave) == 0);
}

static void put(const char *name, const void *p, size_t n)
{
	auto_close int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && io_write_all(fd, p, n) == 0);
}

static void make_pipe(int *ret_r, int *ret_w)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	*ret_r = p[0];
	*ret_w = p[1];
}

static void a_file_is_read_completely(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	static char big[100000];

	enter();
	memset(big, 'x', sizeof big);
	put("f", big, sizeof big);
	CHECK(buf_add_c(&b, "before") == 0);
	CHECK(io_read_file(AT_FDCWD, "f", &b) == 0);
	CHECK(b.len == 6 + sizeof big && memcmp(b.data + 6, big, sizeof big) == 0);
}

static void a_file_of_the_ceiling_fits_and_one_more_is_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);
	static char big[1001];

	enter();
	put("f", big, 1000);
	CHECK(io_read_file(AT_FDCWD, "f", &b) == 0 && b.len == 1000);
	buf_clear(&b);
	put("f", big, 1001);
	CHECK(io_read_file(AT_FDCWD, "f", &b) == -E2BIG);
}

static void a_missing_file_is_enoent(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(10);

	enter();
	CHECK(io_read_file(AT_FDCWD, "none", &b) == -ENOENT);
	CHECK(io_write_file(AT_FDCWD, "none", "x") == -ENOENT);
}

static void write_file_needs_an_existing_file(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(10);

	enter();
	put("f", "", 0);
	CHECK(io_write_file(AT_FDCWD, "f", "text") == 0);
	CHECK(io_read_file(AT_FDCWD, "f", &b) == 0);
	CHECK_STR(b.data, "text");
}

static void replace_file_leaves_the_old_or_the_new_file(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	enter();
	put("f", "old", 3);
	put("tmp", "rest of one who died", 20);
	CHECK(io_replace_file(AT_FDCWD, "tmp", "f", str_of("new")) == 0);
	CHECK(access("tmp", F_OK) < 0);
	CHECK(io_read_file(AT_FDCWD, "f", &b) == 0);
	CHECK_STR(b.data, "new");
	CHECK(mkdir("d", 0700) == 0);
	CHECK(io_replace_file(AT_FDCWD, "tmp", "d", str_of("new")) == -EISDIR);
	CHECK(access("tmp", F_OK) < 0);
}

static void read_exact_reports_an_early_end(void)
{
	auto_close int r = FD_NONE, w = FD_NONE;
	char got[4] = "";

	make_pipe(&r, &w);
	CHECK(io_write_all(w, "abcd", 4) == 0);
	CHECK(io_read_exact(r, got, 4) == 0 && memcmp(got, "abcd", 4) == 0);
	CHECK(io_write_all(w, "ab", 2) == 0);
	fd_close(&w);
	CHECK(io_read_exact(r, got, 4) == -ENODATA);
	CHECK(io_read_exact(r, got, 0) == 0);
	CHECK(io_read_exact(FD_NONE, got, 1) == -EBADF);
}

static void nonblock_is_set_and_cleared(void)
{
	auto_close int r = FD_NONE, w = FD_NONE;
	char c;

	make_pipe(&r, &w);
	CHECK(io_set_nonblock(r, true) == 0);
	CHECK(read(r, &c, 1) < 0 && errno == EAGAIN);
	CHECK(io_set_nonblock(r, false) == 0);
	CHECK((fcntl(r, F_GETFL) & O_NONBLOCK) == 0);
	CHECK(io_set_nonblock(FD_NONE, true) == -EBADF);
}

static void mkdir_accepts_an_existing_directory_but_not_a_file(void)
{
	enter();
	CHECK(io_mkdir(AT_FDCWD, "d", 0700) == 0);
	CHECK(io_mkdir(AT_FDCWD, "d", 0700) == 0);
	put("f", "", 0);
	CHECK(io_mkdir(AT_FDCWD, "f", 0700) == -ENOTDIR);
	CHECK(io_mkdir(AT_FDCWD, "none/d", 0700) == -ENOENT);
}

static void mkdir_all_makes_every_part_with_the_mode(void)
{
	struct stat st;
	char path[64];

	enter();
	CHECK(io_mkdir_all("a/b//c/", 0700) == 0);
	CHECK(stat("a/b/c", &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(io_mkdir_all("a/b/c", 0700) == 0);
	(void)snprintf(path, sizeof path, "%s/x/y", dir);
	CHECK(io_mkdir_all(path, 0700) == 0);
	CHECK(stat("x/y", &st) == 0 && S_ISDIR(st.st_mode));
	CHECK(io_mkdir_all("/", 0700) == 0);
	put("a/f", "", 0);
	CHECK(io_mkdir_all("a/f/g", 0700) == -ENOTDIR);
}

static void mkdir_all_refuses_empty_and_overlong_paths(void)
{
	char path[LIMIT_PATH + 1];

	enter();
	CHECK(io_mkdir_all("", 0700) == -ENOENT);
	memset(path, '/', sizeof path);
	path[LIMIT_PATH] = '\0';
	CHECK(io_mkdir_all(path, 0700) == -ENAMETOOLONG);
	path[LIMIT_PATH - 1] = '\0';
	CHECK(io_mkdir_all(path, 0700) == 0);
}

T_MAIN(T(a_file_is_read_completely), T(a_file_of_the_ceiling_fits_and_one_more_is_refused),
       T(a_missing_file_is_enoent), T(write_file_needs_an_existing_file),
       T(replace_file_leaves_the_old_or_the_new_file), T(read_exact_reports_an_early_end),
       T(nonblock_is_set_and_cleared), T(mkdir_accepts_an_existing_directory_but_not_a_file),
       T(mkdir_all_makes_every_part_with_the_mode), T(mkdir_all_refuses_empty_and_overlong_paths))
