/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read.h"

#include <sys/mman.h>

#include "base/io.h"
#include "base/limits.h"
#include "t.h"

#define HASH "0000000000000000000000000000000000000000000000000000000000000000"

static int file_with(const char *text, size_t n)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	CHECK(fd >= 0 && io_write_all(fd, text, n) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void lines_are_returned_one_by_one(void)
{
	auto_close int fd = file_with("a\n\nbc\nrest", 10);
	auto_done(trace_lines_done) struct trace_lines l;
	struct str s;

	trace_lines_init(&l, fd);
	CHECK(trace_lines_next(&l, &s) == 1 && str_is(s, "a"));
	CHECK(trace_lines_next(&l, &s) == 1 && str_is(s, ""));
	CHECK(trace_lines_next(&l, &s) == 1 && str_is(s, "bc") && l.line == 3);
	CHECK(trace_lines_next(&l, &s) == 0 && trace_lines_rest(&l) == 4);
}

static void a_growing_file_is_read_on(void)
{
	auto_close int fd = file_with("one\ntw", 6);
	auto_done(trace_lines_done) struct trace_lines l;
	struct str s;

	trace_lines_init(&l, fd);
	CHECK(trace_lines_next(&l, &s) == 1);
	CHECK(trace_lines_next(&l, &s) == 0);
	CHECK(pwrite(fd, "o\n", 2, 6) == 2);
	CHECK(trace_lines_next(&l, &s) == 1 && str_is(s, "two") && l.line == 2);
	CHECK(trace_lines_next(&l, &s) == 0 && trace_lines_rest(&l) == 0);
}

static void check_length(size_t n, bool newline, int want)
{
	static char text[LIMIT_EVENT + 2];
	struct trace_lines l;
	struct str s;
	int fd;

	memset(text, 'x', sizeof text);
	if (newline)
		text[n] = '\n';
	fd = file_with(text, n + newline);
	trace_lines_init(&l, fd);
	CHECK(trace_lines_next(&l, &s) == want);
	CHECK(want != 1 || s.n == n);
	trace_lines_done(&l);
	close(fd);
}

static void a_line_has_a_ceiling(void)
{
	check_length(LIMIT_EVENT, true, 1);
	check_length(LIMIT_EVENT + 1, true, -E2BIG);
	check_length(LIMIT_EVENT, false, 0);
	check_length(LIMIT_EVENT + 1, false, -E2BIG);
}

static void an_event_is_taken_apart(void)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	struct err e = { 0 };

	CHECK(trace_event_parse(STR("{\"seq\":7,\"time\":\"t\",\"sandbox\":\"s\",\"call\":2,"
				    "\"parent\":5,\"kind\":\"k\",\"x\":\"\\u0000\","
				    "\"prev\":\"" HASH "\"}"),
				&ev, &e) == 0);
	CHECK(ev.seq == 7 && ev.call == 2 && ev.parent == 5 && str_is(ev.kind, "k"));
	CHECK(str_is(ev.time, "t") && str_is(ev.sandbox, "s") && str_is(ev.prev, HASH));
}

static void invalid_events_are_refused(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"1",
		"{}",
		"{\"seq\":0,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\",\"prev\":\"" HASH "\"}",
		"{\"seq\":\"1\",\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\",\"prev\":\"" HASH
		"\"}",
		"{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\",\"prev\":\"00\"}",
		"{\"seq\":1,\"time\":\"t\",\"sandbox\":1,\"kind\":\"k\",\"prev\":\"" HASH "\"}",
		"{\"seq\":1,\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\",\"prev\":"
		"\"" HASH "\"}",
		"{\"seq\":1,\"call\":4294967296,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\","
		"\"prev\":\"" HASH "\"}",
		"{\"seq\":1,\"call\":-1,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\","
		"\"prev\":\"" HASH "\"}",
		"{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",\"kind\":\"k\",\"prev\":\"" HASH
		"\"} x",
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct trace_event ev = { 0 };
		struct err e = { 0 };

		CHECK(trace_event_parse(str_of(bad[i]), &ev, &e) == -1);
		CHECK(e.kind == ERR_INVALID && !ev.json);
	}
}

static void text_is_read_plain_or_as_base64(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64);
	json_t *v = json_loads("[\"a\\u0000\",{\"b64\":\"/w==\"},1,{\"b64\":1},{\"b64\":\"!\"}]",
			       JSON_ALLOW_NUL, NULL);

	CHECK(v && trace_value_text(json_array_get(v, 0), &b) == 0);
	CHECK(trace_value_text(json_array_get(v, 1), &b) == 0);
	CHECK(str_eq(buf_str(&b), STR("a\0\xff")));
	for (size_t i = 2; i < 5; i++)
		CHECK(trace_value_text(json_array_get(v, i), &b) < 0);
	CHECK(trace_value_text(NULL, &b) < 0);
	json_decref(v);
}

T_MAIN(T(lines_are_returned_one_by_one), T(a_growing_file_is_read_on), T(a_line_has_a_ceiling),
       T(an_event_is_taken_apart), T(invalid_events_are_refused),
       T(text_is_read_plain_or_as_base64))
