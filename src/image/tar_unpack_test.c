/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_unpack.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "image/tar_testlib.h"
#include "t.h"

/*
 * The scene of each attack: dest/ is where the stream goes, outside/ holds what must stay as
 * it is, and dest already has links that lead there.
 */
static void build_scene(void)
{
	CHECK(mkdir(in_scratch("dest"), 0755) == 0);
	CHECK(mkdir(in_scratch("dest/dir"), 0755) == 0);
	CHECK(mkdir(in_scratch("outside"), 0755) == 0);
	make_file(in_scratch("outside/secret"), "secret", 0600);
	make_file(in_scratch("dest/old"), "old", 0644);
	CHECK(symlink(in_scratch("outside"), in_scratch("dest/planted")) == 0);
	CHECK(symlink("../outside/secret", in_scratch("dest/planted_file")) == 0);
}

static int unpack(const struct buf *b, const char *want, const char *as, struct err *e)
{
	auto_close int in = fd_of(b);
	auto_close int dir = open(in_scratch("dest"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct tree_counts n = { 0 };
	struct tar_unpack o = {
		.in_fd = in, .dir_fd = dir, .want = want, .as = as, .mode_mask = 0777
	};

	CHECK(dir >= 0);
	return tar_unpack(&o, &n, e);
}

static void symlink_to(struct buf *b, const char *name, const char *target)
{
	raw_header(b, (struct raw){ .name = name, .type = '2', .link = target });
}

static void dotdot(struct buf *b)
{
	raw_text(b, "../outside/new", "x");
}
static void dotdot_inside(struct buf *b)
{
	raw_text(b, "dir/../../outside/new", "x");
}
static void dotdot_last(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "dir/..", .type = '5', .mode = 0777 });
}
static void absolute(struct buf *b)
{
	raw_text(b, in_scratch("outside/new"), "x");
}
static void absolute_by_pax(struct buf *b)
{
	raw_pax(b, 'x', "path", in_scratch("outside/new"));
	raw_text(b, "innocent", "x");
}
static void dotdot_by_pax(struct buf *b)
{
	raw_pax(b, 'x', "path", "../outside/new");
	raw_text(b, "innocent", "x");
}
static void dotdot_by_gnu_name(struct buf *b)
{
	raw_entry(b, (struct raw){ .name = "long", .type = 'L' }, "../outside/new", 15);
	raw_text(b, "innocent", "x");
}
static void dotdot_by_prefix(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "outside/new" });
	memcpy(b->data + b->len - 512 + 345, "..", 2);
	raw_sum(b, b->len - 512);
}
static void through_own_symlink(struct buf *b)
{
	symlink_to(b, "l", in_scratch("outside"));
	raw_text(b, "l/new", "x");
}
static void through_relative_symlink(struct buf *b)
{
	symlink_to(b, "l", "../outside");
	raw_text(b, "l/new", "x");
}
static void through_two_symlinks(struct buf *b)
{
	symlink_to(b, "a", ".");
	symlink_to(b, "a/b", "..");
	raw_text(b, "a/b/outside/new", "x");
}
static void through_planted_symlink(struct buf *b)
{
	raw_text(b, "planted/new", "x");
}
static void dir_through_planted_symlink(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "planted/new", .type = '5' });
}
static void dir_over_planted_symlink(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "planted", .type = '5', .mode = 0777 });
	raw_text(b, "planted/new", "x");
}
static void symlink_through_symlink(struct buf *b)
{
	symlink_to(b, "planted/new", "/etc/passwd");
}
static void hardlink_outside(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "../outside/secret" });
}
static void hardlink_absolute(struct buf *b)
{
	raw_header(b,
		   (struct raw){ .name = "h", .type = '1', .link = in_scratch("outside/secret") });
}
static void hardlink_through_symlink(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "planted/secret" });
}
static void hardlink_to_symlink(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "planted_file" });
	raw_text(b, "h", "x");
}
static void hardlink_to_dir(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "dir" });
}
static void hardlink_to_nothing(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "missing" });
}
static void hardlink_by_pax_linkpath(struct buf *b)
{
	raw_pax(b, 'x', "linkpath", "../outside/secret");
	raw_header(b, (struct raw){ .name = "h", .type = '1', .link = "old" });
}
static void char_device(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "dev", .type = '3' });
}
static void block_device(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "dev", .type = '4' });
}
static void fifo(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "pipe", .type = '6' });
}
static void gnu_sparse(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "hole", .type = 'S' });
}
static void pax_sparse(struct buf *b)
{
	raw_pax(b, 'x', "GNU.sparse.major", "1");
	raw_text(b, "hole", "x");
}
static void unknown_type(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "odd", .type = 'Z' });
}
static void global_path(struct buf *b)
{
	raw_pax(b, 'g', "path", "../outside/new");
	raw_text(b, "a", "x");
}
static void huge_size(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "huge" });
	memset(b->data + b->len - 512 + 124, 0x7f, 12);
	b->data[b->len - 512 + 124] = (char)0x80;
	raw_sum(b, b->len - 512);
}
static void pax_size_beyond_the_end(struct buf *b)
{
	raw_pax(b, 'x', "size", "1000000");
	raw_text(b, "a", "x");
}
static void link_with_data(struct buf *b)
{
	raw_entry(b, (struct raw){ .name = "l", .type = '2', .link = "x" }, "data", 4);
}
static void file_over_dir(struct buf *b)
{
	raw_text(b, "dir", "x");
}
static void dir_over_file(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "old", .type = '5' });
}
static void below_a_file(struct buf *b)
{
	raw_text(b, "old/new", "x");
}
static void root_as_symlink(struct buf *b)
{
	symlink_to(b, "./", "/");
}
static void empty_name(struct buf *b)
{
	raw_text(b, "", "x");
}
static void empty_link(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "l", .type = '2' });
}
static void nul_in_pax_path(struct buf *b)
{
	raw_entry(b, (struct raw){ .name = "pax", .type = 'x' }, "16 path=a\0/../b\n", 16);
	raw_text(b, "a", "x");
}
static void giant_pax(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "pax", .type = 'x', .size = LIMIT_PAX + 1 });
}
static void giant_gnu_name(struct buf *b)
{
	raw_header(b, (struct raw){ .name = "long", .type = 'L', .size = LIMIT_PATH + 1 });
}
static void bad_checksum(struct buf *b)
{
	raw_text(b, "a", "x");
	b->data[0] = 'b';
}
static void no_tar_at_all(struct buf *b)
{
	for (int i = 0; i < 200; i++)
		CHECK(buf_add_c(b, "#!/bin/sh\n") == 0);
}
static void long_component(struct buf *b)
{
	char name[300] = { 0 };

	memset(name, 'n', 256);
	raw_pax(b, 'x', "path", name);
	raw_text(b, "a", "x");
}
static void too_deep(struct buf *b)
{
	char name[2 * LIMIT_TREE_DEPTH + 4];

	for (int i = 0; i <= LIMIT_TREE_DEPTH; i++)
		memcpy(name + 2 * i, "d/", 3);
	name[2 * LIMIT_TREE_DEPTH + 1] = '\0';
	raw_pax(b, 'x', "path", name);
	raw_text(b, "a", "x");
}
static void two_pax_headers(struct buf *b)
{
	raw_pax(b, 'x', "path", "a");
	raw_pax(b, 'x', "path", "../b");
	raw_text(b, "a", "x");
}
static void lone_zero_block(struct buf *b)
{
	raw_text(b, "a", "x");
	raw_end(b);
	b->len -= 512;
	raw_text(b, "b", "x");
}

/* clang-format off */
static const struct evil {
	const char *name;
	void (*make)(struct buf *b);
	const char *says; /* part of the error */
} evils[] = {
#define EVIL(fn, says) { #fn, fn, says }
	EVIL(dotdot, "entry '../outside/new' has a '..' in its path"),
	EVIL(dotdot_inside, "'..' in its path"),
	EVIL(dotdot_last, "'..' in its path"),
	EVIL(absolute, "has an absolute path"),
	EVIL(absolute_by_pax, "has an absolute path"),
	EVIL(dotdot_by_pax, "'..' in its path"),
	EVIL(dotdot_by_gnu_name, "'..' in its path"),
	EVIL(dotdot_by_prefix, "'..' in its path"),
	EVIL(through_own_symlink, "'l/new' lies below something that is not a directory"),
	EVIL(through_relative_symlink, "not a directory"),
	EVIL(through_two_symlinks, "not a directory"),
	EVIL(through_planted_symlink, "not a directory"),
	EVIL(dir_through_planted_symlink, "not a directory"),
	EVIL(dir_over_planted_symlink, "'planted' exists and is not a directory"),
	EVIL(symlink_through_symlink, "not a directory"),
	EVIL(hardlink_outside, "'..' in its path"),
	EVIL(hardlink_absolute, "has an absolute path"),
	EVIL(hardlink_through_symlink, "not a directory"),
	EVIL(hardlink_to_symlink, "which is no file"),
	EVIL(hardlink_to_dir, "which is no file"),
	EVIL(hardlink_to_nothing, "'h' is a hard link to 'missing', which is missing"),
	EVIL(hardlink_by_pax_linkpath, "'..' in its path"),
	EVIL(char_device, "entry 'dev' is a character device"),
	EVIL(block_device, "entry 'dev' is a block device"),
	EVIL(fifo, "entry 'pipe' is a fifo"),
	EVIL(gnu_sparse, "entry 'hole' is a sparse file"),
	EVIL(pax_sparse, "sparse file"),
	EVIL(unknown_type, "entry 'odd' has the unknown type 0x5a"),
	EVIL(global_path, "global header"),
	EVIL(huge_size, "entry 'huge' has a malformed number"),
	EVIL(pax_size_beyond_the_end, "ended early, after 1 entries, in 'a'"),
	EVIL(link_with_data, "entry 'l' is not a file, but has data"),
	EVIL(file_over_dir, "'dir' is a directory and is not replaced"),
	EVIL(dir_over_file, "'old' exists and is not a directory"),
	EVIL(below_a_file, "not a directory"),
	EVIL(root_as_symlink, "would replace the destination"),
	EVIL(empty_name, "without a name"),
	EVIL(empty_link, "entry 'l' is a link without a target"),
	EVIL(nul_in_pax_path, "zero byte"),
	EVIL(giant_pax, "extended header is too long"),
	EVIL(giant_gnu_name, "extended header is too long"),
	EVIL(bad_checksum, "wrong checksum"),
	EVIL(no_tar_at_all, "wrong checksum"),
	EVIL(long_component, "component longer than 255"),
	EVIL(too_deep, "is nested too deep"),
	EVIL(two_pax_headers, "two extended headers"),
	EVIL(lone_zero_block, "end marker of only one block"),
};
/* clang-format on */

static void play(const struct evil *evil)
{
	struct buf b = BUF_INIT(1 << 20);
	auto_free char *before = NULL, *after = NULL;
	struct err e = { 0 };

	build_scene();
	before = tree_text(in_scratch("outside"));
	evil->make(&b);
	raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == -1);
	if (!strstr(e.msg, evil->says))
		t_fail_str(__FILE__, __LINE__, e.msg, evil->says);
	after = tree_text(in_scratch("outside"));
	CHECK_STR(after, before);
	CHECK_STR(content(in_scratch("dest/old")), "old");
	CHECK(!exists(in_scratch("new")));
	buf_done(&b);
}

static void no_hostile_stream_touches_files_outside(void)
{
	int failed = 0;

	for (size_t i = 0; i < ARRAY_LEN(evils); i++) {
		pid_t pid;
		int st = 1;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			play(&evils[i]);
			exit(0);
		}
		CHECK(waitpid(pid, &st, 0) == pid);
		if (st != 0)
			printf("# evil stream '%s'\n", evils[i].name);
		failed += st != 0;
	}
	CHECK(failed == 0);
}

static void unrequested_entries_are_refused(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct err e;

	build_scene();
	raw_text(&b, "b", "asked");
	raw_text(&b, ".bashrc", "evil");
	raw_end(&b);
	CHECK(unpack(&b, "b", NULL, &e) == -1);
	CHECK_STR(e.msg, "entry '.bashrc' was not asked for, only 'b'");
	CHECK(!exists(in_scratch("dest/.bashrc")));
	CHECK(unpack(&b, NULL, "c", &e) == -1);
	CHECK_STR(e.msg, "entry '.bashrc' lies beside 'b', the top of the stream");
	CHECK_STR(content(in_scratch("dest/c")), "asked");
	buf_done(&b);
}

static void links_are_replaced_and_never_written_through(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct stat st;
	struct err e;

	build_scene();
	raw_text(&b, "planted_file", "mine");
	raw_text(&b, "planted", "mine");
	raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == 0);
	CHECK_STR(content(in_scratch("outside/secret")), "secret");
	CHECK(lstat(in_scratch("dest/planted_file"), &st) == 0 && S_ISREG(st.st_mode));
	CHECK(lstat(in_scratch("dest/planted"), &st) == 0 && S_ISREG(st.st_mode));
	buf_done(&b);
}

static void a_second_name_of_a_file_is_not_written_through(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct err e;

	build_scene();
	CHECK(link(in_scratch("outside/secret"), in_scratch("dest/second")) == 0);
	raw_text(&b, "second", "mine");
	raw_header(&b, (struct raw){ .name = "third", .type = '1', .link = "old" });
	raw_text(&b, "third", "mine");
	raw_header(&b, (struct raw){ .name = "third", .type = '1', .link = "third" });
	raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == 0);
	CHECK_STR(content(in_scratch("outside/secret")), "secret");
	CHECK_STR(content(in_scratch("dest/old")), "old");
	CHECK_STR(content(in_scratch("dest/third")), "mine");
	buf_done(&b);
}

static void set_id_bits_do_not_arrive(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct stat st;
	struct err e;

	build_scene();
	raw_entry(&b, (struct raw){ .name = "su", .mode = 06755 }, "x", 1);
	raw_header(&b, (struct raw){ .name = "d", .type = '5', .mode = 07777 });
	raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == 0);
	CHECK(stat(in_scratch("dest/su"), &st) == 0 && (st.st_mode & 07777) == 0755);
	CHECK(st.st_mtim.tv_sec == 0144);
	CHECK(stat(in_scratch("dest/d"), &st) == 0 && (st.st_mode & 07777) == 0777);
	buf_done(&b);
}

static void overlay_attributes_do_not_arrive(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char value[8] = "";
	struct err e;

	build_scene();
	raw_pax(&b, 'x', "SCHILY.xattr.user.overlay.opaque", "y");
	raw_header(&b, (struct raw){ .name = "d", .type = '5' });
	raw_pax(&b, 'x', "SCHILY.xattr.user.ok", "y");
	raw_header(&b, (struct raw){ .name = "e", .type = '5' });
	raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == 0);
	CHECK(getxattr(in_scratch("dest/d"), "user.overlay.opaque", value, sizeof value) < 0);
	CHECK(getxattr(in_scratch("dest/e"), "user.ok", value, sizeof value) == 1);
	buf_done(&b);
}

static void a_truncated_stream_leaves_no_partial_file(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char data[1200];

	build_scene();
	memset(data, 'd', sizeof data);
	raw_text(&b, "first", "complete");
	raw_entry(&b, (struct raw){ .name = "second" }, data, sizeof data);
	raw_end(&b);
	for (size_t cut = 0; cut < b.len; cut += 100) {
		struct buf part = { .data = b.data, .len = cut, .max = b.max };
		struct err e = { 0 };

		(void)unlink(in_scratch("dest/second"));
		CHECK(unpack(&part, NULL, NULL, &e) == -1);
		CHECK(e.sys == ENODATA && strstr(e.msg, "ended"));
		if (exists(in_scratch("dest/second")))
			CHECK(strlen(content(in_scratch("dest/second"))) == sizeof data);
		CHECK(cut < 1024 || strcmp(content(in_scratch("dest/first")), "complete") == 0);
	}
	buf_done(&b);
}

static void the_top_gets_the_name_that_was_chosen(void)
{
	struct buf b = BUF_INIT(1 << 20), dot = BUF_INIT(1 << 20);
	struct stat st, st2;
	struct err e;

	build_scene();
	raw_header(&b, (struct raw){ .name = "top/", .type = '5', .mode = 0750 });
	raw_text(&b, "top/f", "1");
	raw_header(&b, (struct raw){ .name = "top/h", .type = '1', .link = "top/f" });
	raw_text(&b, "top/missing/parents/f", "2");
	raw_end(&b);
	CHECK(unpack(&b, "top", "chosen", &e) == 0);
	CHECK_STR(content(in_scratch("dest/chosen/missing/parents/f")), "2");
	CHECK(stat(in_scratch("dest/chosen/f"), &st) == 0);
	CHECK(stat(in_scratch("dest/chosen/h"), &st2) == 0 && st.st_ino == st2.st_ino);
	CHECK(stat(in_scratch("dest/chosen"), &st) == 0 && (st.st_mode & 07777) == 0750);
	CHECK(!exists(in_scratch("dest/top")));
	raw_header(&dot, (struct raw){ .name = "./", .type = '5', .mode = 0711 });
	raw_text(&dot, "./x", "3");
	raw_end(&dot);
	CHECK(unpack(&dot, NULL, "fresh", &e) == 0);
	CHECK_STR(content(in_scratch("dest/fresh/x")), "3");
	CHECK(unpack(&dot, NULL, NULL, &e) == 0);
	CHECK_STR(content(in_scratch("dest/x")), "3");
	buf_done(&b);
	buf_done(&dot);
}

static void bytes_after_the_end_marker_are_read_up_to_a_limit(void)
{
	struct buf b = BUF_INIT(16 << 20);
	struct err e;

	build_scene();
	raw_text(&b, "f", "1");
	raw_end(&b);
	for (int i = 0; i < 18; i++)
		raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == 0);
	while (b.len < 2 * LIMIT_TAR_TRAILER)
		raw_end(&b);
	CHECK(unpack(&b, NULL, NULL, &e) == -1);
	CHECK_STR(e.msg, "the tar stream continues after its end marker");
	buf_done(&b);
}

static void special_files_are_not_replaced(void)
{
	static const char *const names[] = { "dest/fifo", "dest/socket" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	auto_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat before, after;
	struct err e;

	build_scene();
	CHECK(mkfifo(in_scratch("dest/fifo"), 0600) == 0);
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", in_scratch("dest/socket"));
	CHECK(bind(sock, (struct sockaddr *)&addr, sizeof addr) == 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (int kind = 0; kind < 3; kind++) {
			struct buf b = BUF_INIT(1 << 20);

			CHECK(lstat(in_scratch(names[i]), &before) == 0);
			if (kind == 0)
				raw_text(&b, names[i] + 5, "x");
			else if (kind == 1)
				symlink_to(&b, names[i] + 5, "old");
			else
				raw_header(&b, (struct raw){ .name = names[i] + 5,
							     .type = '1',
							     .link = "old" });
			raw_end(&b);
			CHECK(unpack(&b, NULL, NULL, &e) == -1 && e.kind == ERR_CONFLICT);
			CHECK(strstr(e.msg, "is a special file and is not replaced"));
			CHECK(lstat(in_scratch(names[i]), &after) == 0);
			CHECK(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
			buf_done(&b);
		}
	}
}

T_MAIN(T(no_hostile_stream_touches_files_outside), T(unrequested_entries_are_refused),
       T(links_are_replaced_and_never_written_through),
       T(a_second_name_of_a_file_is_not_written_through), T(set_id_bits_do_not_arrive),
       T(overlay_attributes_do_not_arrive), T(a_truncated_stream_leaves_no_partial_file),
       T(the_top_gets_the_name_that_was_chosen),
       T(bytes_after_the_end_marker_are_read_up_to_a_limit), T(special_files_are_not_replaced))
