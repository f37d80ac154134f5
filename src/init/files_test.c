/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "image/tar_testlib.h"
#include "t.h"

static char out_text[1 << 16], err_text[4096];

static void put_fd(int target, const char *text, size_t n)
{
	int fd = memfd_create("io", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, n) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(dup2(fd, target) == target);
	close(fd);
}

static void take_fd(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	CHECK(n >= 0);
	text[n] = '\0';
}

/* Run one operation as init's child would: stdin given, stdout and stderr collected. */
static int run(int (*op)(const char *, mode_t), const char *path, mode_t mode, const char *in,
	       size_t n)
{
	int saved = dup(1), status;

	put_fd(0, in, n);
	fflush(stdout);
	put_fd(1, "", 0);
	put_fd(2, "", 0);
	status = op(path, mode);
	take_fd(1, out_text, sizeof out_text);
	take_fd(2, err_text, sizeof err_text);
	CHECK(dup2(saved, 1) == 1);
	close(saved);
	CHECK(status == 0 || strchr(err_text, '\n') == strchr(err_text, '\0') - 1);
	return status;
}

static uint64_t read_offset, read_length = UINT64_MAX;

static int op_read(const char *path, mode_t mode)
{
	(void)mode;
	return files_read(path, read_offset, read_length);
}
static int op_write(const char *path, mode_t mode)
{
	return files_write(path, mode, NULL);
}
static int op_write_tree(const char *path, mode_t mode)
{
	(void)mode;
	return files_write_tree(path);
}
static int op_read_tree(const char *path, mode_t mode)
{
	(void)mode;
	return files_read_tree(path);
}

static int do_read(const char *path)
{
	return run(op_read, path, 0, "", 0);
}
static int do_write(const char *path, mode_t mode, const char *text)
{
	return run(op_write, path, mode, text, strlen(text));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	CHECK(lstat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void a_file_is_read_through_links(void)
{
	make_file(in_scratch("f"), "content", 0644);
	CHECK(symlink("f", in_scratch("l")) == 0);
	CHECK(do_read(in_scratch("l")) == 0);
	CHECK_STR(out_text, "content");
	CHECK(do_read("/proc/self/cmdline") == 0);
	CHECK(out_text[0] != '\0');
}

static void a_part_of_a_file_is_read(void)
{
	static const struct {
		uint64_t offset, length;
		const char *text;
	} parts[] = {
		{ 0, UINT64_MAX, "0123456789" },
		{ 3, UINT64_MAX, "3456789" },
		{ 0, 4, "0123" },
		{ 3, 4, "3456" },
		{ 8, 4, "89" },
		{ 10, 4, "" },
		{ 99, UINT64_MAX, "" },
		{ 5, 0, "" },
	};

	make_file(in_scratch("part"), "0123456789", 0644);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		read_offset = parts[i].offset;
		read_length = parts[i].length;
		CHECK(do_read(in_scratch("part")) == 0);
		CHECK_STR(out_text, parts[i].text);
	}
	read_offset = UINT64_MAX;
	CHECK(do_read(in_scratch("part")) == 1 && strstr(err_text, "Invalid argument"));
	read_offset = 0;
	read_length = UINT64_MAX;
}

static void special_files_are_refused_without_blocking(void)
{
	CHECK(mkfifo(in_scratch("fifo"), 0666) == 0);
	CHECK(do_read(in_scratch("fifo")) == 1 && strstr(err_text, "fifo: is not a regular file"));
	CHECK(do_write(in_scratch("fifo"), 0, "x") == 1 && strstr(err_text, "not a regular file"));
	CHECK(do_read("/dev/zero") == 1 && do_write("/dev/null", 0, "x") == 1);
	CHECK(do_read(scratch()) == 1 && strstr(err_text, ": is a directory"));
	CHECK(do_write(scratch(), 0, "x") == 1 && strstr(err_text, ": is a directory"));
	CHECK(do_read(in_scratch("none")) == 1 && strstr(err_text, "none: No such file"));
}

static void writing_makes_parents_and_uses_the_mode(void)
{
	umask(077);
	CHECK(do_write(in_scratch("a/b/c"), 0755, "text") == 0);
	CHECK_STR(content(in_scratch("a/b/c")), "text");
	CHECK(mode_of(in_scratch("a/b/c")) == 0755);
	CHECK(do_write(in_scratch("d"), 0, "") == 0 && mode_of(in_scratch("d")) == 0644);
	CHECK(do_write(in_scratch("e/"), 0, "x") == 1 && !exists(in_scratch("e")));
	CHECK(chdir(scratch()) == 0);
	CHECK(do_write("relative", 0644, "here") == 0);
	CHECK_STR(content(in_scratch("relative")), "here");
}

static void an_existing_file_keeps_its_mode_and_owner(void)
{
	struct stat st;

	make_file(in_scratch("f"), "a longer old content", 0640);
	if (geteuid() == 0)
		CHECK(chown(in_scratch("f"), 12, 34) == 0);
	CHECK(do_write(in_scratch("f"), 0777, "new") == 0);
	CHECK_STR(content(in_scratch("f")), "new");
	CHECK(stat(in_scratch("f"), &st) == 0 && (st.st_mode & 07777) == 0640);
	CHECK(geteuid() != 0 || (st.st_uid == 12 && st.st_gid == 34));
}

static void writing_follows_links_also_dangling_ones(void)
{
	CHECK(mkdir(in_scratch("d"), 0755) == 0);
	make_file(in_scratch("d/f"), "old", 0644);
	CHECK(symlink("d/f", in_scratch("l")) == 0);
	CHECK(symlink("l", in_scratch("l2")) == 0);
	CHECK(symlink("d/new", in_scratch("l3")) == 0);
	CHECK(symlink("loop", in_scratch("loop")) == 0);
	CHECK(do_write(in_scratch("l2"), 0, "through") == 0);
	CHECK_STR(content(in_scratch("d/f")), "through");
	CHECK(do_write(in_scratch("l3"), 0, "made") == 0);
	CHECK_STR(content(in_scratch("d/new")), "made");
	CHECK(do_write(in_scratch("loop"), 0, "x") == 1);
}

static void a_read_only_file_is_not_replaced(void)
{
	make_file(in_scratch("f"), "old", 0444);
	CHECK(chmod(scratch(), 0777) == 0);
	if (geteuid() == 0)
		CHECK(chown(in_scratch("f"), 65534, 65534) == 0 && setresuid(65534, 65534, 0) == 0);
	CHECK(do_write(in_scratch("f"), 0, "new") == 1 && strstr(err_text, "Permission denied"));
	CHECK_STR(content(in_scratch("f")), "old");
	CHECK(geteuid() != 65534 || setresuid(0, 0, 0) == 0);
}

static void a_writable_file_in_a_closed_directory_is_written_in_place(void)
{
	struct stat before, after;

	CHECK(chmod(scratch(), 0755) == 0 && mkdir(in_scratch("d"), 0755) == 0);
	make_file(in_scratch("d/f"), "old and long", 0666);
	CHECK(stat(in_scratch("d/f"), &before) == 0);
	if (geteuid() != 0)
		return;
	CHECK(setresuid(65534, 65534, 0) == 0);
	CHECK(do_write(in_scratch("d/f"), 0, "new") == 0);
	CHECK(setresuid(0, 0, 0) == 0);
	CHECK_STR(content(in_scratch("d/f")), "new");
	CHECK(stat(in_scratch("d/f"), &after) == 0 && before.st_ino == after.st_ino);
}

static void a_broken_stream_leaves_the_old_file(void)
{
	auto_free char *before = NULL, *after = NULL;
	int fd;

	make_file(in_scratch("f"), "old", 0644);
	before = tree_text(scratch());
	/* Reading a directory fails with EISDIR. */
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && dup2(fd, 0) == 0);
	put_fd(2, "", 0);
	CHECK(files_write(in_scratch("f"), 0, NULL) == 1);
	after = tree_text(scratch());
	CHECK_STR(after, before);
	close(fd);
}

static void a_stream_becomes_the_path_or_is_put_into_it(void)
{
	struct buf b = BUF_INIT(1 << 20);

	raw_header(&b, (struct raw){ .name = "top", .type = '5', .mode = 0755 });
	raw_text(&b, "top/f", "1");
	raw_end(&b);
	CHECK(run(op_write_tree, in_scratch("new"), 0, b.data, b.len) == 0);
	CHECK_STR(content(in_scratch("new/f")), "1");
	CHECK(run(op_write_tree, in_scratch("new"), 0, b.data, b.len) == 0);
	CHECK_STR(content(in_scratch("new/top/f")), "1");
	CHECK(run(op_write_tree, in_scratch("other/"), 0, b.data, b.len) == 1);
	CHECK(strstr(err_text, "other/: is not a directory"));
	CHECK(run(op_write_tree, in_scratch("no/parent"), 0, b.data, b.len) == 1);
	CHECK(run(op_write_tree, in_scratch("new/f"), 0, b.data, b.len) == 1);
	CHECK_STR(content(in_scratch("new/f")), "1");
	CHECK(chdir(scratch()) == 0);
	CHECK(run(op_write_tree, "here", 0, b.data, b.len) == 0);
	CHECK_STR(content(in_scratch("here/f")), "1");
	CHECK(run(op_write_tree, "x", 0, b.data, 700) == 1 && strstr(err_text, "ended early"));
	buf_done(&b);
}

static void a_tree_is_read_with_its_own_name(void)
{
	CHECK(mkdir(in_scratch("t"), 0755) == 0);
	make_file(in_scratch("t/f"), "1", 0644);
	CHECK(mkfifo(in_scratch("t/fifo"), 0644) == 0);
	CHECK(run(op_read_tree, in_scratch("t"), 0, "", 0) == 0);
	CHECK(strstr(err_text, "skipped 1"));
	CHECK(run(op_read_tree, in_scratch("none"), 0, "", 0) == 1);
	CHECK(strstr(err_text, "none' does not exist"));
	CHECK(run(op_read_tree, in_scratch("t/fifo"), 0, "", 0) == 1);
	CHECK(run(op_read_tree, in_scratch("two\nlines"), 0, "", 0) == 1);
}

T_MAIN(T(a_file_is_read_through_links), T(a_part_of_a_file_is_read),
       T(special_files_are_refused_without_blocking), T(writing_makes_parents_and_uses_the_mode),
       T(an_existing_file_keeps_its_mode_and_owner), T(writing_follows_links_also_dangling_ones),
       T(a_read_only_file_is_not_replaced),
       T(a_writable_file_in_a_closed_directory_is_written_in_place),
       T(a_broken_stream_leaves_the_old_file), T(a_stream_becomes_the_path_or_is_put_into_it),
       T(a_tree_is_read_with_its_own_name))
