/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/story.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "t.h"

#define EVENT(seq, fields) \
	"{\"seq\":" seq ",\"time\":\"2026-01-02T03:04:0" seq \
	".000000Z\",\"sandbox\":\"k3x9abcdefgh\"," fields \
	",\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n"
#define CREATE EVENT("1", "\"kind\":\"sandbox.create\",\"template\":\"host\",\"name\":\"box\"")
#define START  EVENT("2", "\"call\":1,\"kind\":\"call.start\",\"argv\":[\"make\",\"test\"]")
#define EXIT   EVENT("3", "\"call\":1,\"kind\":\"call.exit\",\"reason\":\"oom\",\"signal\":9")
#define END \
	EVENT("4", "\"kind\":\"sandbox.end\",\"cause\":\"killed\",\"reason\":\"killed\"," \
		   "\"by\":\"cay\",\"by_pid\":7,\"by_uid\":1000")

static int file_of(const char *text)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

static struct trace_story read_story(const char *first, const char *last)
{
	struct trace_story s;
	int a = file_of(first), b = file_of(last);

	trace_story_read(a, b, &s);
	close(a);
	close(b);
	return s;
}

static void both_ends_are_told(void)
{
	auto_done(trace_story_done) struct trace_story s =
		read_story(CREATE START EXIT END, CREATE START EXIT END);

	CHECK_STR(s.name, "box");
	CHECK_STR(s.template_, "host");
	CHECK_STR(s.argv, "[\"make\",\"test\"]");
	CHECK_STR(s.created, "2026-01-02T03:04:01.000000Z");
	CHECK_STR(s.last, "2026-01-02T03:04:04.000000Z");
	CHECK(s.call == 1 && s.signal == 9 && s.code == -1 && s.events == 4);
	CHECK_STR(s.call_reason, "oom");
	CHECK(s.has_end && s.by_pid == 7 && s.by_uid == 1000);
	CHECK_STR(s.cause, "killed");
	CHECK_STR(s.by, "cay");
}

static void the_ends_may_be_in_different_segments(void)
{
	auto_done(trace_story_done) struct trace_story s = read_story(CREATE START, EXIT END);

	CHECK_STR(s.name, "box");
	CHECK(s.has_end && s.call == 1);
}

static void a_trace_without_an_end_has_none(void)
{
	auto_done(trace_story_done) struct trace_story s =
		read_story(CREATE START, CREATE START "{\"seq\":3,\"time");

	CHECK(!s.has_end && s.events == 2 && s.call == 0);
	CHECK_STR(s.last, "2026-01-02T03:04:02.000000Z");
}

static void a_long_trace_is_read_at_its_ends_only(void)
{
	static char big[6 * LIMIT_EVENT + 4096];
	struct trace_story s;
	size_t n;
	int fd;

	memset(big, ' ', sizeof big - 1);
	for (size_t i = 99; i < sizeof big; i += 100)
		big[i] = '\n';
	memcpy(big, CREATE START, sizeof CREATE START - 1);
	n = sizeof big - sizeof END - sizeof EXIT;
	big[n - 1] = '\n';
	memcpy(big + n, EXIT END, sizeof EXIT END);
	fd = file_of(big);
	trace_story_read(fd, fd, &s);
	CHECK_STR(s.name, "box");
	CHECK(s.has_end && s.call == 1);
	trace_story_done(&s);
	close(fd);
}

static void damage_is_skipped(void)
{
	auto_done(trace_story_done) struct trace_story s =
		read_story("{\n\0\n" CREATE, "nothing\n" END);

	CHECK(s.has_end);
	trace_story_done(&s);
	s = read_story("", "");
	CHECK(!s.has_end && !s.argv && s.events == 0);
}

T_MAIN(T(both_ends_are_told), T(the_ends_may_be_in_different_segments),
       T(a_trace_without_an_end_has_none), T(a_long_trace_is_read_at_its_ends_only),
       T(damage_is_skipped))
