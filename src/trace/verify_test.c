/* SPDX-License-Identifier: Apache-2.0 */
/* A real trace of ten events, damaged in every way that the verifier must detect. */
#include "trace/verify.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/io.h"
#include "base/limits.h"
#include "t.h"
#include "trace/log.h"

enum { EVENTS = 10 };

static char *lines[EVENTS + 2]; /* from 1; without newlines */
static struct trace_head head;

static void write_trace(const char *sandbox)
{
	char dir[] = "/tmp/cay-verify-XXXXXX";
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct trace t;
	struct err e;
	int dirfd;

	CHECK(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_CLOEXEC);
	CHECK(trace_create(&t, dirfd, "t", sandbox, &e) == 0);
	for (int i = 1; i <= EVENTS; i++) {
		trace_begin(&t, "call.start", (uint32_t)i, 0);
		trace_text(&t, "x", STR("value"));
		CHECK(trace_end(&t) == 0);
	}
	CHECK(trace_flush(&t) == 0);
	head.seq = t.seq;
	sha256_hex(t.head, head.hash);
	CHECK(io_read_file(dirfd, "t", &b) == 0);
	trace_done(&t);
	CHECK(unlinkat(dirfd, "t", 0) == 0 && rmdir(dir) == 0);
	lines[1] = strtok(buf_take(&b, NULL), "\n");
	for (int i = 2; i <= EVENTS; i++)
		lines[i] = strtok(NULL, "\n");
	CHECK(lines[EVENTS]);
}

/* order: the line numbers to write, ended by 0. */
static int file_of(const int *order)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	for (; *order; order++)
		CHECK(dprintf(fd, "%s\n", lines[*order]) > 0);
	return fd;
}

static void check_fd(int fd, const struct trace_head *want_head, const char *want)
{
	struct trace_summary got;
	struct err e = { 0 };
	int r;

	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	r = trace_verify(fd, "sandbox1", want_head, &got, &e);
	CHECK_STR(r < 0 ? e.msg : "ok", want ? want : "ok");
	CHECK(r == 0 || e.kind == ERR_FAILED);
	close(fd);
}

static void check(const int *order, const struct trace_head *want_head, const char *want)
{
	check_fd(file_of(order), want_head, want);
}

#define ORDER(...) \
	(const int[]) \
	{ \
		__VA_ARGS__, 0 \
	}
#define WHOLE ORDER(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

static void a_whole_trace_passes(void)
{
	struct trace_summary got;
	struct err e = { 0 };
	int fd;

	write_trace("sandbox1");
	check(WHOLE, NULL, NULL);
	check(WHOLE, &head, NULL);
	fd = file_of(WHOLE);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(trace_verify(fd, NULL, NULL, &got, &e) == 0);
	CHECK(got.head.seq == EVENTS && strcmp(got.head.hash, head.hash) == 0);
	CHECK_STR(got.sandbox, "sandbox1");
	check_fd(memfd_create("empty", MFD_CLOEXEC), NULL, NULL);
}

/* Flips every single byte of the file: each change is detected. */
static void no_changed_byte_passes(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	int fd;

	write_trace("sandbox1");
	fd = file_of(WHOLE);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && io_read_all(fd, &b) == 0);
	for (size_t i = 0; i < b.len; i++) {
		struct trace_summary got;
		struct err e = { 0 };
		char c = (char)(b.data[i] ^ 1);

		CHECK(pwrite(fd, &c, 1, (off_t)i) == 1);
		CHECK(lseek(fd, 0, SEEK_SET) == 0);
		CHECK(trace_verify(fd, "sandbox1", &head, &got, &e) == -1);
		CHECK(pwrite(fd, b.data + i, 1, (off_t)i) == 1);
	}
	check_fd(fd, &head, NULL);
}

static void a_changed_line_is_named(void)
{
	write_trace("sandbox1");
	memcpy(strstr(lines[5], "value"), "VALUE", 5);
	check(WHOLE, &head,
	      "line 6: event 6 does not follow event 5: the line before it was changed or removed");
	check(ORDER(1, 2, 3, 4, 5, 6), NULL,
	      "line 6: event 6 does not follow event 5: the line before it, or this line itself, was "
	      "changed");
}

static void a_changed_hash_is_named(void)
{
	char *prev;

	write_trace("sandbox1");
	prev = strstr(lines[5], "\"prev\":\"") + 8;
	*prev = *prev == '0' ? '1' : '0';
	check(WHOLE, NULL, "line 5: event 5 does not follow event 4: this line was changed");
	prev = strstr(lines[1], "\"prev\":\"") + 8;
	*prev = '1';
	check(WHOLE, NULL, "line 1: event 1 does not begin a chain: its 'prev' is not zero");
}

static void a_changed_last_line_needs_the_head(void)
{
	write_trace("sandbox1");
	memcpy(strstr(lines[10], "value"), "VALUE", 5);
	check(WHOLE, NULL, NULL);
	check(WHOLE, &head,
	      "line 10: event 10 is not the one that the sandbox wrote: it was changed, or the "
	      "trace was written anew");
}

static void removed_lines_are_named(void)
{
	write_trace("sandbox1");
	check(ORDER(1, 2, 3, 5, 6, 7, 8, 9, 10), &head,
	      "line 4: event 5 stands where event 4 belongs: event 4 was removed");
	check(ORDER(1, 2, 3, 7, 8, 9, 10), &head,
	      "line 4: event 7 stands where event 4 belongs: events 4 to 6 were removed");
	check(ORDER(2, 3), NULL,
	      "line 1: event 2 stands where event 1 belongs: event 1 was removed");
}

static void swapped_and_repeated_lines_are_named(void)
{
	write_trace("sandbox1");
	check(ORDER(1, 2, 4, 3, 5, 6, 7, 8, 9, 10), NULL,
	      "line 3: event 4 stands where event 3 belongs, which is at line 4: lines were "
	      "reordered");
	check(ORDER(1, 2, 2, 3), NULL,
	      "line 3: event 2 stands where event 3 belongs: the line was repeated or put in");
}

static void a_cut_end_is_found_with_the_head(void)
{
	write_trace("sandbox1");
	check(ORDER(1, 2, 3, 4, 5, 6, 7), NULL, NULL);
	check(ORDER(1, 2, 3, 4, 5, 6, 7), &head,
	      "line 7: the trace ends at event 7, but its sandbox has written 10: the end was cut "
	      "off");
}

static void an_unfinished_last_line_is_found(void)
{
	int fd;

	write_trace("sandbox1");
	fd = file_of(ORDER(1, 2));
	CHECK(write(fd, lines[3], 20) == 20);
	check_fd(fd, NULL, "line 3: cut off after 20 bytes, in the middle of an event");
}

static void a_live_sandbox_may_write_beyond_the_head(void)
{
	struct trace_head earlier = { .seq = 2 };
	uint8_t hash[SHA256_SIZE];
	int fd;

	write_trace("sandbox1");
	sha256(lines[2], strlen(lines[2]), hash);
	sha256_hex(hash, earlier.hash);
	fd = file_of(ORDER(1, 2, 3));
	CHECK(write(fd, lines[4], 20) == 20);
	check_fd(fd, &earlier, NULL);
}

static void invalid_lines_are_named(void)
{
	char big[] = "x";
	int fd;

	write_trace("sandbox1");
	lines[EVENTS + 1] = big;
	check(ORDER(1, 2, EVENTS + 1, 3), NULL, "line 3: not JSON (at byte 1)");
	fd = file_of(ORDER(1, 2));
	for (int i = 0; i <= LIMIT_EVENT; i++)
		CHECK(write(fd, "y", 1) == 1);
	check_fd(fd, NULL, "line 3: longer than 65536 bytes");
}

static void another_sandbox_is_named(void)
{
	write_trace("sandbox\033x");
	check(WHOLE, NULL,
	      "line 1: an event of sandbox 'sandbox\\x1bx' in the trace of 'sandbox1'");
}

T_MAIN(T(a_whole_trace_passes), T(no_changed_byte_passes), T(a_changed_line_is_named),
       T(a_changed_hash_is_named), T(a_changed_last_line_needs_the_head),
       T(removed_lines_are_named), T(swapped_and_repeated_lines_are_named),
       T(a_cut_end_is_found_with_the_head), T(an_unfinished_last_line_is_found),
       T(a_live_sandbox_may_write_beyond_the_head), T(invalid_lines_are_named),
       T(another_sandbox_is_named))
