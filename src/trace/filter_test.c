/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/filter.h"

#include "t.h"

#define HASH "0000000000000000000000000000000000000000000000000000000000000000"

/* Also checks that the glance never skips a wanted event. */
static bool passes(struct trace_filter *f, const char *fields)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	struct err e = { 0 };
	char line[1024];
	bool skipped;
	int r;

	(void)snprintf(line, sizeof line,
		       "{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",%s,\"prev\":\"" HASH "\"}",
		       fields);
	CHECK(trace_event_parse(str_of(line), &ev, &e) == 0);
	skipped = trace_filter_skips(f, str_of(line));
	r = trace_filter_check(f, &ev);
	CHECK(!(skipped && r == 1));
	return r == 1;
}

static bool kind(const char *pattern, const char *fields)
{
	auto_done(trace_filter_done) struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, pattern, NULL, &e) == 0);
	return passes(&f, fields);
}

static void a_kind_is_exact_or_a_part_or_a_glob(void)
{
	CHECK(kind("file.create", "\"kind\":\"file.create\""));
	CHECK(!kind("file.create", "\"kind\":\"file.change\""));
	CHECK(kind("file", "\"kind\":\"file.change\""));
	CHECK(kind("file.*", "\"kind\":\"file.change\""));
	CHECK(kind("*.exit", "\"kind\":\"process.exit\""));
	CHECK(!kind("file", "\"kind\":\"filefoo.x\""));
	CHECK(!kind("file.*", "\"kind\":\"call.start\""));
}

static void a_kind_that_cannot_match_is_an_error(void)
{
	struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, "proces", NULL, &e) == -1 && e.kind == ERR_INVALID);
	CHECK_STR(e.msg, "no kind of event matches 'proces'");
	CHECK(strstr(e.hint, " process ") && strstr(e.hint, " trace;"));
}

static void a_call_is_found_by_number(void)
{
	auto_done(trace_filter_done) struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, NULL, "17", &e) == 0);
	CHECK(!passes(&f, "\"call\":1,\"kind\":\"call.start\",\"call_id\":\"17\""));
	CHECK(!passes(&f, "\"kind\":\"sandbox.end\"") && !f.call_seen);
	CHECK(passes(&f, "\"call\":17,\"kind\":\"call.exit\"") && f.call_seen);
	CHECK(!passes(&f, "\"call\":170,\"kind\":\"call.exit\""));
}

static void a_call_is_found_by_its_callers_id(void)
{
	auto_done(trace_filter_done) struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, NULL, "tool-1", &e) == 0);
	CHECK(!passes(&f, "\"call\":4,\"kind\":\"call.exit\""));
	CHECK(passes(&f, "\"call\":4,\"kind\":\"call.start\",\"call_id\":\"tool-1\""));
	CHECK(!passes(&f, "\"call\":5,\"kind\":\"call.start\",\"call_id\":\"tool-2\""));
	CHECK(passes(&f, "\"call\":6,\"kind\":\"call.start\",\"call_id\":\"tool-1\""));
	CHECK(passes(&f, "\"call\":4,\"kind\":\"call.exit\""));
	CHECK(passes(&f, "\"call\":6,\"kind\":\"call.exit\""));
	CHECK(!passes(&f, "\"call\":5,\"kind\":\"call.exit\""));
	CHECK(!passes(&f, "\"call\":9,\"kind\":\"process.exec\",\"call_id\":\"tool-1\""));
}

static void an_uncertain_change_belongs_to_each_candidate(void)
{
	auto_done(trace_filter_done) struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, "file", "3", &e) == 0);
	CHECK(passes(&f, "\"kind\":\"file.change\",\"certain\":false,\"calls\":[2,3]"));
	CHECK(!passes(&f, "\"kind\":\"file.change\",\"certain\":false,\"calls\":[2,4]"));
	CHECK(!passes(&f, "\"call\":3,\"kind\":\"call.start\""));
}

static bool skips(const char *pattern, const char *call, const char *line)
{
	auto_done(trace_filter_done) struct trace_filter f;
	struct err e = { 0 };

	CHECK(trace_filter_init(&f, pattern, call, &e) == 0);
	return trace_filter_skips(&f, str_of(line));
}

static void a_glance_skips_what_is_not_wanted(void)
{
	static const char *const exec = "{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",\"call\":2,"
					"\"parent\":1,\"kind\":\"process.exec\",not looked at";

	CHECK(skips("file", NULL, exec) && !skips("process", NULL, exec));
	CHECK(skips(NULL, "3", exec) && !skips(NULL, "2", exec));
	CHECK(skips(NULL, "tool-1", exec));
	CHECK(!skips("file", NULL, "{ \"seq\":1,\"kind\":\"process.exec\"}"));
	CHECK(!skips("file", NULL,
		     "{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\\\"\",\"kind\":"
		     "\"process.exec\"}"));
	CHECK(!skips(NULL, "tool-1",
		     "{\"seq\":1,\"time\":\"t\",\"sandbox\":\"s\",\"call\":2,"
		     "\"kind\":\"call.start\""));
}

T_MAIN(T(a_kind_is_exact_or_a_part_or_a_glob), T(a_kind_that_cannot_match_is_an_error),
       T(a_call_is_found_by_number), T(a_call_is_found_by_its_callers_id),
       T(an_uncertain_change_belongs_to_each_candidate), T(a_glance_skips_what_is_not_wanted))
