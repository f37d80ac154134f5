/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "image/tar_testlib.h"
#include "image/tar_unpack.h"
#include "t.h"

/* Pack path, unpack below the scratch directory's "out". */
static struct tree_counts round_trip(const char *path)
{
	auto_close int mem = memfd_create("tar", MFD_CLOEXEC);
	auto_close int out = FD_NONE;
	struct tree_counts n = { 0 }, m = { 0 };
	struct err e = { 0 };

	CHECK(mem >= 0);
	(void)mkdir(in_scratch("out"), 0700);
	out = open(in_scratch("out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(out >= 0);
	if (tar_pack(&(struct tar_pack){ .out_fd = mem, .dir_fd = AT_FDCWD, .path = path }, &n,
		     &e) < 0)
		t_fail(__FILE__, __LINE__, e.msg);
	CHECK(lseek(mem, 0, SEEK_SET) == 0);
	if (tar_unpack(&(struct tar_unpack){ .in_fd = mem, .dir_fd = out, .mode_mask = 07777 }, &m,
		       &e) < 0)
		t_fail(__FILE__, __LINE__, e.msg);
	CHECK(n.files == m.files && n.dirs == m.dirs);
	return n;
}

static void set_time(const char *path, long long s, long ns)
{
	struct timespec t[2] = { { .tv_sec = s, .tv_nsec = ns }, { .tv_sec = s, .tv_nsec = ns } };

	CHECK(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == 0);
}

static void build_tree(void)
{
	char name[300], path[400];

	CHECK(mkdir(in_scratch("b"), 0755) == 0);
	CHECK(mkdir(in_scratch("b/empty"), 0711) == 0);
	CHECK(mkdir(in_scratch("b/locked"), 0700) == 0);
	make_file(in_scratch("b/plain"), "plain", 0644);
	make_file(in_scratch("b/exec"), "#!/bin/sh\n", 0755);
	make_file(in_scratch("b/zero"), "", 0600);
	make_file(in_scratch("b/locked/f"), "in a locked directory", 0400);
	make_file(in_scratch("b/h\xc3\xa9llo \xe2\x98\x83"), "unicode", 0644);
	make_file(in_scratch("b/\xff\xfe\x80"), "not UTF-8", 0644);
	make_file(in_scratch("b/new\nline"), "odd", 0644);
	CHECK(link(in_scratch("b/plain"), in_scratch("b/locked/same")) == 0);
	CHECK(symlink("plain", in_scratch("b/link")) == 0);
	CHECK(symlink("/does/not/exist", in_scratch("b/dangling")) == 0);
	CHECK(symlink("..", in_scratch("b/up")) == 0);
	memset(name, 'n', sizeof name);
	name[150] = '/';
	name[299] = '\0';
	(void)snprintf(path, sizeof path, "b/%.150s", name);
	CHECK(mkdir(in_scratch(path), 0755) == 0);
	(void)snprintf(path, sizeof path, "b/%s", name);
	make_file(in_scratch(path), "long name", 0644);
	(void)setxattr(in_scratch("b/plain"), "user.note", "kept", 4, 0);
	set_time(in_scratch("b/plain"), 1700000000, 123456789);
	set_time(in_scratch("b/exec"), -1000, 5);
	set_time(in_scratch("b/link"), 1600000000, 42);
	set_time(in_scratch("b/zero"), 1ll << 33, 999999999);
	set_time(in_scratch("b/empty"), 1500000000, 0);
	CHECK(chmod(in_scratch("b/locked"), 0555) == 0);
	set_time(in_scratch("b/locked"), 1400000000, 7);
}

static void a_tree_round_trips(void)
{
	auto_free char *before = NULL, *after = NULL;
	struct tree_counts n;

	build_tree();
	n = round_trip(in_scratch("b"));
	before = tree_text(in_scratch("b"));
	after = tree_text(in_scratch("out/b"));
	CHECK_STR(after, before);
	CHECK(n.files == 12 && n.dirs == 4);
	CHECK(n.skipped == 0 && n.changed == 0 && n.unreadable == 0);
}

static void names_begin_with_the_last_component(void)
{
	static const struct {
		const char *path, *top;
	} rows[] = { { "/a/b", "b" }, { "/a/b/", "b" }, { "b", "b" },	{ "b//", "b" },
		     { "/", "." },    { ".", "." },	{ "a/.", "." }, { "a/..", "." } };
	char top[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(tar_pack_top(rows[i].path, top));
		CHECK_STR(top, rows[i].top);
	}
	build_tree();
	round_trip(in_scratch("b/plain"));
	CHECK_STR(content(in_scratch("out/plain")), "plain");
	round_trip(in_scratch("b/locked/."));
	CHECK_STR(content(in_scratch("out/f")), "in a locked directory");
}

static void a_link_is_packed_as_a_link_unless_a_slash_follows(void)
{
	struct stat st;

	build_tree();
	CHECK(symlink("b", in_scratch("tree")) == 0);
	round_trip(in_scratch("tree"));
	CHECK(lstat(in_scratch("out/tree"), &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(unlink(in_scratch("out/tree")) == 0);
	round_trip(in_scratch("tree/"));
	CHECK_STR(content(in_scratch("out/tree/plain")), "plain");
}

static void sockets_fifos_and_kernel_files_are_left_out_and_counted(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct tree_counts n;

	build_tree();
	CHECK(mkfifo(in_scratch("b/fifo"), 0644) == 0);
	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", in_scratch("b/sock"));
	CHECK(bind(s, (struct sockaddr *)&a, sizeof a) == 0);
	n = round_trip(in_scratch("b"));
	CHECK(n.skipped == 2 && !exists(in_scratch("out/b/fifo")));
	n = round_trip("/proc/self/fdinfo");
	CHECK(n.skipped == 1 && n.files == 0 && n.dirs == 0);
}

/* Files of /sys announce 4096 bytes and give fewer; a copy must keep to the announcement. */
static void a_file_shorter_than_announced_is_padded_and_counted(void)
{
	struct tree_counts n;
	struct stat st;

	if (!exists("/sys/kernel/mm/transparent_hugepage/enabled"))
		return;
	n = round_trip("/sys/kernel/mm/transparent_hugepage/enabled");
	CHECK(n.changed == 1);
	CHECK(stat(in_scratch("out/enabled"), &st) == 0 && st.st_size == 4096);
}

struct resize {
	const char *path;
	off_t size;
};

/* Once some of the content was read. */
static void resize(void *ctx, const struct tree_counts *n)
{
	const struct resize *r = ctx;

	CHECK(n->bytes == 0 || truncate(r->path, r->size) == 0);
}

static void a_file_that_changes_size_keeps_to_the_announced_one_and_is_counted(void)
{
	static const off_t sizes[] = { 5 << 20, 1 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		auto_close int mem = memfd_create("tar", MFD_CLOEXEC);
		struct resize r = { in_scratch("f"), sizes[i] };
		struct tree_counts n = { 0 }, m = { 0 };
		struct stat st;
		struct err e;
		int out = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		make_file(r.path, "", 0644);
		CHECK(mem >= 0 && truncate(r.path, 3 << 20) == 0);
		CHECK(tar_pack(&(struct tar_pack){ .out_fd = mem,
						   .dir_fd = AT_FDCWD,
						   .path = r.path,
						   .progress = { resize, &r } },
			       &n, &e) == 0);
		CHECK(n.changed == 1 && lseek(mem, 0, SEEK_SET) == 0);
		CHECK(tar_unpack(&(struct tar_unpack){ .in_fd = mem,
						       .dir_fd = out,
						       .as = "copy",
						       .mode_mask = 0777 },
				 &m, &e) == 0);
		CHECK(stat(in_scratch("copy"), &st) == 0 && st.st_size == 3 << 20);
		close(out);
	}
}

static void unreadable_files_are_left_out_and_named(void)
{
	struct tree_counts n;

	build_tree();
	make_file(in_scratch("b/private"), "x", 0);
	CHECK(mkdir(in_scratch("b/closed"), 0) == 0);
	CHECK(chmod(scratch(), 0777) == 0);
	if (geteuid() == 0)
		CHECK(chown(in_scratch("b/locked/f"), 65534, 65534) == 0 && seteuid(65534) == 0);
	n = round_trip(in_scratch("b"));
	CHECK(n.unreadable == 4 || n.unreadable == 2);
	CHECK(strstr(n.unreadable_first, ": Permission denied"));
	CHECK(exists(in_scratch("out/b/plain")) && !exists(in_scratch("out/b/private")));
	if (geteuid() == 65534)
		CHECK(seteuid(0) == 0);
}

static void a_deep_tree_needs_few_descriptors(void)
{
	struct rlimit r = { 24, 24 };
	int at = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), top = at, next;
	struct tree_counts n;

	for (int i = 0; i < 500; i++) {
		CHECK(mkdirat(at, i ? "d" : "deep", 0755) == 0);
		next = openat(at, i ? "d" : "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		if (at != top)
			close(at);
		at = next;
	}
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
	n = round_trip(in_scratch("deep"));
	CHECK(n.dirs == 500 && n.unreadable == 0);
	close(at);
	close(top);
}

static void a_missing_source_differs_from_a_closed_reader(void)
{
	struct tree_counts n = { 0 };
	struct err e;
	int p[2];

	build_tree();
	signal(SIGPIPE, SIG_IGN);
	CHECK(pipe2(p, O_CLOEXEC) == 0);
	CHECK(tar_pack(&(struct tar_pack){ .out_fd = p[1],
					   .dir_fd = AT_FDCWD,
					   .path = in_scratch("none") },
		       &n, &e) == -1);
	CHECK(e.kind == ERR_NOT_FOUND && e.sys == 0);
	close(p[0]);
	CHECK(tar_pack(&(struct tar_pack){ .out_fd = p[1],
					   .dir_fd = AT_FDCWD,
					   .path = in_scratch("b") },
		       &n, &e) == -1);
	CHECK(e.sys == EPIPE);
	close(p[1]);
}

T_MAIN(T(a_tree_round_trips), T(names_begin_with_the_last_component),
       T(a_link_is_packed_as_a_link_unless_a_slash_follows),
       T(sockets_fifos_and_kernel_files_are_left_out_and_counted),
       T(a_file_shorter_than_announced_is_padded_and_counted),
       T(a_file_that_changes_size_keeps_to_the_announced_one_and_is_counted),
       T(unreadable_files_are_left_out_and_named), T(a_deep_tree_needs_few_descriptors),
       T(a_missing_source_differs_from_a_closed_reader))
