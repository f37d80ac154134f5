/* SPDX-License-Identifier: Apache-2.0 */
/* The call of each event; ceilings, failures and races. */
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "warden/changes/changes_fixture.h"
#include "warden/changes/changes_report.h"

static void begin(void)
{
	fx_overlay(true);
	FX_WALK("");
}

/* Deeper than the number of kept descriptors, with names before and after on each level. */
static void deep_trees_need_few_descriptors(void)
{
	enum { DEEP = 1500 };
	struct rlimit few = { 100, 100 };
	int up, fd;

	fx_enter(true);
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	fx_start("/", false);
	up = open("upper", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < DEEP; i++) {
		CHECK(mkdirat(up, "d", 0755) == 0 && mkdirat(up, "z", 0755) == 0);
		fd = openat(up, "d", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && close(up) == 0);
		up = fd;
	}
	fx_walk();
	CHECK(fx.total == 2 * DEEP);
	FX_WALK("");
	CHECK(mkdirat(up, "e", 0755) == 0 && close(up) == 0);
	fx_walk();
	CHECK(fx.total == 1);
	fx_done();
}

static void what_is_too_deep_is_said(void)
{
	int up, fd;

	fx_enter(true);
	fx_start("/", false);
	up = open("upper", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < LIMIT_WALK_DEPTH + 1; i++) {
		CHECK(mkdirat(up, "d", 0755) == 0);
		fd = openat(up, "d", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && close(up) == 0);
		up = fd;
	}
	fx_walk();
	CHECK(fx.total == LIMIT_WALK_DEPTH + 1);
	FX_WALK("gap 1 dir");
	close(up);
	fx_done();
}

static void a_directory_that_cannot_be_read_keeps_its_records(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	fx_enter(true);
	CHECK(mkdir("upper/d", 0755) == 0);
	fx_put("upper/d/f", "x");
	CHECK(syscall(SYS_capset, &head, none) == 0);
	fx_start("/", false);
	CHECK(chmod("upper/d", 0) == 0);
	FX_WALK("change /d dir mode\ngap 1 dir");
	CHECK(chmod("upper/d", 0755) == 0);
	FX_WALK("change /d dir mode");
	fx_done();
}

static void events_beyond_the_ceiling_are_counted(void)
{
	char name[32];

	fx_enter(true);
	fx_start("/", false);
	for (int i = 0; i < LIMIT_WALK_EVENTS; i++) {
		(void)snprintf(name, sizeof name, "upper/%d", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
	fx_walk();
	CHECK(fx.total == LIMIT_WALK_EVENTS);
	CHECK(fx.flushes > 10);
	for (int i = 0; i < LIMIT_WALK_EVENTS; i++) {
		(void)snprintf(name, sizeof name, "upper/%d", i);
		CHECK(unlink(name) == 0);
	}
	fx_put("upper/zz", "x");
	fx_walk();
	CHECK(fx.total == LIMIT_WALK_EVENTS + 1);
	CHECK(fx.count == 1);
	FX_WALK("");
	fx_done();
}

static void events_that_are_too_long_are_counted(void)
{
	begin();
	fx_put("a", "x");
	fx_put("b", "x");
	fx.fail_end = -E2BIG;
	{
		struct changes_call call = { .call = 1, .end_ns = UINT64_MAX };
		struct trace t = { 0 };
		struct err e;

		CHECK(changes_walk(fx.changes, &call, 1, &(struct changes_sink){ .trace = &t },
				   &e) == -1);
	}
	CHECK(fx.count == 2);
	fx.fail_end = 0;
	FX_WALK("create /a file\ncreate /b file");
	fx_done();
}

enum { MANY = 1000 /* more files than the index can hold in memory */ };

static void make_many(void)
{
	char name[32];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "../upper/m%d", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
}

static void remove_many(void)
{
	char name[32];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "../upper/m%d", i);
		CHECK(unlink(name) == 0);
	}
}

static bool index_is_a_file(void)
{
	CHECK(access("../index/files.index.new", F_OK) < 0);
	return access("../index/files.index", F_OK) == 0;
}

static void an_unchanged_tree_leaves_the_index_alone(void)
{
	struct stat a, b;

	begin();
	make_many();
	fx_walk();
	CHECK(stat("../index/files.index", &a) == 0);
	fx_walk();
	CHECK(stat("../index/files.index", &b) == 0);
	CHECK(a.st_ino == b.st_ino && a.st_size > 0);
	fx_put("b", "x");
	fx_walk();
	CHECK(stat("../index/files.index", &b) == 0);
	CHECK(a.st_ino != b.st_ino && a.st_size < b.st_size);
	CHECK(index_is_a_file());
	fx_done();
}

static void a_small_index_is_no_file(void)
{
	begin();
	fx_put("a", "x");
	fx_put("dir/sub/new", "x");
	FX_WALK("create /a file\ncreate /dir/sub/new file");
	FX_WALK("");
	CHECK(unlink("a") == 0);
	FX_WALK("delete /a file");
	CHECK(!index_is_a_file());
	fx_done();
}

static void an_index_that_grows_becomes_a_file_and_back(void)
{
	begin();
	fx_put("a", "x");
	fx_walk();
	make_many();
	fx_walk();
	CHECK(fx.total == MANY && index_is_a_file());
	FX_WALK("");
	fx_put("a", "more");
	fx_put("z", "x");
	FX_WALK("change /a file\ncreate /z file");
	CHECK(index_is_a_file());
	remove_many();
	fx_walk();
	CHECK(fx.total == MANY && !index_is_a_file());
	FX_WALK("");
	fx_put("z", "more");
	FX_WALK("change /z file");
	fx_done();
}

/* Write and read back an index of that many bytes. */
static void check_index_of(int dirfd, size_t bytes, bool is_file)
{
	static const char text[512];
	auto_done(changes_index_done) struct changes_index x = CHANGES_INDEX_INIT;
	struct changes_rec rec = { 0 };
	struct changes_writer w;
	struct changes_reader r;
	size_t seen = 0, len;

	changes_writer_init(&w, dirfd, &x);
	for (size_t at = 0; at < bytes; at += len, rec.ino++) {
		len = bytes - at < 256 ? bytes - at : 128;
		rec.name_len = (uint16_t)(len - sizeof rec);
		CHECK(changes_writer_put(&w, &rec, (struct str){ text, rec.name_len }) == 0);
	}
	CHECK(changes_writer_commit(&w, &x) == 0);
	changes_writer_done(&w);
	CHECK((x.fd >= 0) == is_file);
	changes_reader_init(&r, &x);
	for (uint64_t i = 0; changes_reader_next(&r) == 0 && !r.end; i++) {
		CHECK(r.rec.ino == i && r.name.n == r.rec.name_len);
		seen += sizeof r.rec + r.name.n;
	}
	CHECK(r.end && seen == bytes);
	changes_reader_done(&r);
}

static void the_index_becomes_a_file_one_byte_past_the_ceiling(void)
{
	fx_enter(true);
	fx.index_fd = open("index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_index_of(fx.index_fd, 0, false);
	check_index_of(fx.index_fd, 100, false);
	check_index_of(fx.index_fd, CHANGES_INDEX_CHUNK, false);
	CHECK(access("index/files.index", F_OK) < 0);
	check_index_of(fx.index_fd, CHANGES_INDEX_CHUNK + 1, true);
	check_index_of(fx.index_fd, 5 * CHANGES_INDEX_CHUNK + 1, true);
	fx_done();
}

/* An index of several chunks, changed at its start, middle and end. */
static void a_large_index_is_merged(void)
{
	char name[32];

	begin();
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof name, "%04d", i);
		fx_put(name, "x");
	}
	fx_walk();
	CHECK(fx.total == 3000);
	FX_WALK("");
	CHECK(unlink("2999") == 0);
	FX_WALK("delete /2999 file");
	fx_put("1500x", "x");
	fx_put("1500", "more");
	FX_WALK("change /1500 file\ncreate /1500x file");
	CHECK(unlink("0000") == 0);
	FX_WALK("delete /0000 file");
	FX_WALK("");
	fx_done();
}

static void a_change_in_the_window_of_one_call_is_certain(void)
{
	struct changes_call calls[2] = { { .call = 7, .end_ns = UINT64_MAX }, { .call = 8 } };

	begin();
	fx.show_calls = true;
	calls[1].end_ns = clock_real_ns();
	fx_wait_past(calls[1].end_ns);
	calls[0].start_ns = clock_coarse_ns();
	fx_put("a", "x");
	fx_walk_calls(calls, 2);
	FX_CHECK("create /a file @7");
	CHECK(fx.last_parent == 107);
	fx_done();
}

static void calls_that_overlap_are_both_candidates(void)
{
	struct changes_call calls[2] = { { .call = 1, .end_ns = UINT64_MAX },
					 { .call = 2, .end_ns = UINT64_MAX } };

	begin();
	fx.show_calls = true;
	calls[0].start_ns = calls[1].start_ns = clock_coarse_ns();
	fx_put("a", "x");
	CHECK(unlink("conf") == 0);
	calls[0].end_ns = clock_real_ns();
	fx_walk_calls(calls, 2);
	FX_CHECK("create /a file ?1,2\ndelete /conf file ?1,2");
	CHECK(fx.last_parent == 0);
	fx_done();
}

static void calls_in_a_row_are_told_apart_by_ctime(void)
{
	struct changes_call calls[2] = { { .call = 1 }, { .call = 2, .end_ns = UINT64_MAX } };

	begin();
	fx.show_calls = true;
	calls[0].start_ns = clock_coarse_ns();
	fx_put("a", "x");
	fx_put("conf", "x");
	CHECK(unlink("dir/one") == 0);
	calls[0].end_ns = clock_real_ns();
	fx_wait_past(calls[0].end_ns);
	calls[1].start_ns = clock_coarse_ns();
	fx_put("b", "x");
	CHECK(chmod("empty", 0600) == 0);
	CHECK(rename("other", "z") == 0);
	fx_walk_calls(calls, 2);
	FX_CHECK(
		"create /a file @1\ncreate /b file @2\nchange /conf file @1\n"
		"delete /dir/one file @1\nchange /empty file mode @2\nrename /other -> /z file @2");
	fx_done();
}

/* The directory's ctime is from the second removal: the first left no time. */
static void a_delete_is_certain_only_if_no_earlier_call_can_have_done_it(void)
{
	struct changes_call calls[2] = { { .call = 1 }, { .call = 2, .end_ns = UINT64_MAX } };

	begin();
	fx.show_calls = true;
	calls[0].start_ns = clock_coarse_ns();
	CHECK(unlink("dir/one") == 0);
	calls[0].end_ns = clock_real_ns();
	fx_wait_past(calls[0].end_ns);
	calls[1].start_ns = clock_coarse_ns();
	CHECK(unlink("dir/two") == 0);
	fx_walk_calls(calls, 2);
	FX_CHECK("delete /dir/one file ?1,2\ndelete /dir/two file ?1,2");
	fx_done();
}

/* An idle time of a call, from before everything to long after. */
static struct changes_idles idle_from(uint64_t from_ns)
{
	uint64_t to_ns = clock_real_ns() + 10 * CHANGES_LATE_NS;

	return (struct changes_idles){ .v = { { from_ns, to_ns } }, .n = 1 };
}

static void an_idle_call_has_changed_nothing(void)
{
	struct changes_call calls[] = { { .call = 3, .end_ns = UINT64_MAX },
					{ .call = 14, .end_ns = UINT64_MAX } };
	uint64_t start = clock_real_ns();

	begin();
	fx.show_calls = true;
	fx_put("a", "x");
	fx_walk_calls(calls, 2);
	FX_CHECK("create /a file ?3,14");
	fx_put("b", "x");
	calls[0].idle = idle_from(start);
	fx_walk_calls(calls, 2);
	FX_CHECK("create /b file @14 idle");
	fx_put("c", "x");
	calls[1].idle = idle_from(start);
	fx_walk_calls(calls, 2); /* somebody else did it for one of them */
	FX_CHECK("create /c file ?3,14");
	fx_done();
}

static void who_deleted_is_known_if_the_others_were_idle_since_the_last_walk(void)
{
	struct changes_call calls[] = { { .call = 3, .end_ns = UINT64_MAX },
					{ .call = 14, .end_ns = UINT64_MAX } };
	uint64_t first;

	begin();
	fx.show_calls = true;
	fx_put("a", "x");
	fx_put("b", "x");
	first = clock_real_ns();
	fx_walk_calls(calls, 2);
	fx_wait_past(clock_real_ns());
	CHECK(unlink("a") == 0);
	calls[0].idle = idle_from(clock_real_ns()); /* only since the removal */
	fx_walk_calls(calls, 2);
	FX_CHECK("delete /a file ?3,14");
	CHECK(unlink("b") == 0);
	calls[0].idle = idle_from(first);
	fx_walk_calls(calls, 2);
	FX_CHECK("delete /b file @14 idle");
	fx_done();
}

static void a_change_outside_of_all_windows_is_not_certain(void)
{
	struct changes_call calls[2] = {
		{ .call = 5, .start_ns = UINT64_MAX, .end_ns = UINT64_MAX },
		{ .call = 6, .end_ns = 1 }
	};

	begin();
	fx.show_calls = true;
	fx_put("a", "x");
	fx_walk_calls(calls, 1);
	FX_CHECK("create /a file @5 ?5");
	fx_put("b", "x");
	fx_walk_calls(calls, 2);
	FX_CHECK("create /b file ?5,6");
	fx_put("c", "x");
	fx_walk_calls(NULL, 0);
	FX_CHECK("create /c file");
	fx_done();
}

/* File systems may reuse the number of a freed inode at once. */
static void an_inode_number_used_again_is_no_rename(void)
{
	struct changes_root root = { .dest = "/" };
	struct changes_rec old = { .ino = 5, .btime_ns = 1, .mode = S_IFREG }, new = old;
	auto_done(changes_report_done) struct changes_report p;
	uint32_t dir, gone, reused, moved;

	new.btime_ns = 2;
	CHECK(changes_report_init(&p, &root, NULL, 0) == 0);
	CHECK(changes_report_dir(&p, CHANGES_NONE, 0, STR(""), &dir) == 0);
	CHECK(changes_report_add(&p, CHANGES_GONE, dir, STR("a"), &old, 0, &gone) == 0);
	CHECK(changes_report_add(&p, CHANGES_NEW, dir, STR("b"), &new, 0, &reused) == 0);
	CHECK(changes_report_add(&p, CHANGES_NEW, dir, STR("c"), &old, 0, &moved) == 0);
	CHECK(changes_report_match(&p) == 0);
	CHECK(p.diffs[reused].match == CHANGES_NONE);
	CHECK(p.diffs[moved].match == gone);
}

static void a_failed_walk_is_made_up_for(void)
{
	struct changes_call call = { .call = 1, .end_ns = UINT64_MAX };
	struct trace t = { 0 };
	struct err e;

	begin();
	fx_put("a", "x");
	fx.fail_end = -ENOMEM;
	CHECK(changes_walk(fx.changes, &call, 1, &(struct changes_sink){ .trace = &t }, &e) == -1);
	CHECK(e.sys == ENOMEM);
	fx.fail_end = 0;
	FX_WALK("create /a file");
	make_many();
	fx.fail_end = -ENOMEM;
	CHECK(changes_walk(fx.changes, &call, 1, &(struct changes_sink){ .trace = &t }, &e) == -1);
	CHECK(!index_is_a_file());
	fx.fail_end = 0;
	fx_walk();
	CHECK(fx.total == MANY && index_is_a_file());
	fx_done();
}

static void a_short_walk_is_due_again_at_once_and_a_long_one_later(void)
{
	char name[32];
	uint64_t start, took;

	begin();
	CHECK(changes_due(fx.changes) == 0);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof name, "../upper/%d", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
	start = clock_mono_ns();
	fx_walk();
	took = clock_mono_ns() - start;
	CHECK(took > NS_PER_MS);
	CHECK(changes_due(fx.changes) > 20 * took);
	CHECK(changes_due(fx.changes) <= 30 * took);
	fx_done();
}

/* One process moves directories and replaces them with links while another walks. */
static void a_racing_sandbox_cannot_lead_the_walk_astray(void)
{
	pid_t pid;

	fx_enter(true);
	CHECK(mkdir("secret", 0755) == 0);
	fx_put("secret/inside", "x");
	CHECK(mkdir("upper/a", 0755) == 0 && mkdir("upper/a/b", 0755) == 0);
	fx_put("upper/a/b/file", "x");
	fx_start("/", false);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	while (pid == 0) {
		(void)rename("upper/a/b", "upper/c");
		CHECK(symlink("../../secret", "upper/a/b") == 0);
		(void)unlink("upper/a/b");
		(void)rename("upper/c", "upper/a/b");
		(void)rename("upper/a", "upper/b");
		CHECK(symlink("../secret", "upper/a") == 0);
		(void)unlink("upper/a");
		(void)rename("upper/b", "upper/a");
	}
	for (int i = 0; i < 3000; i++) {
		fx_walk();
		for (int k = 0; k < fx.nevents; k++)
			CHECK(!strstr(fx.events[k], "inside"));
	}
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	fx_done();
}

T_MAIN(T(deep_trees_need_few_descriptors), T(what_is_too_deep_is_said),
       T(a_directory_that_cannot_be_read_keeps_its_records),
       T(events_beyond_the_ceiling_are_counted), T(events_that_are_too_long_are_counted),
       T(an_unchanged_tree_leaves_the_index_alone), T(a_small_index_is_no_file),
       T(an_index_that_grows_becomes_a_file_and_back),
       T(the_index_becomes_a_file_one_byte_past_the_ceiling), T(a_large_index_is_merged),
       T(a_change_in_the_window_of_one_call_is_certain), T(calls_that_overlap_are_both_candidates),
       T(calls_in_a_row_are_told_apart_by_ctime),
       T(a_delete_is_certain_only_if_no_earlier_call_can_have_done_it),
       T(an_idle_call_has_changed_nothing),
       T(who_deleted_is_known_if_the_others_were_idle_since_the_last_walk),
       T(a_change_outside_of_all_windows_is_not_certain),
       T(an_inode_number_used_again_is_no_rename), T(a_failed_walk_is_made_up_for),
       T(a_short_walk_is_due_again_at_once_and_a_long_one_later),
       T(a_racing_sandbox_cannot_lead_the_walk_astray))
