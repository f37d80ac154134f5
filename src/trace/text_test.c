/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text.h"

#include <time.h>

#include "t.h"

#define HASH "0000000000000000000000000000000000000000000000000000000000000000"
#define HEAD "{\"seq\":7,\"time\":\"2026-01-02T12:03:04.123456Z\",\"sandbox\":\"s\""
#define TAIL ",\"prev\":\"" HASH "\"}"

static void show(struct trace_text *t, const char *line, struct buf *out)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	struct err e = { 0 };

	if (trace_event_parse(str_of(line), &ev, &e) < 0)
		t_fail(__FILE__, __LINE__, e.msg);
	CHECK(trace_text_event(t, &ev, out) == 0);
}

static void in_utc(struct trace_text *t, bool color)
{
	setenv("TZ", "UTC", 1);
	tzset();
	trace_text_init(t, color);
	t->day = 126001;
}

/* fields: the text after the sandbox's id. */
static void check(const char *fields, const char *want)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct trace_text t;
	char line[4096];

	in_utc(&t, false);
	(void)snprintf(line, sizeof line, HEAD ",%s" TAIL, fields);
	show(&t, line, &out);
	CHECK(strncmp(out.data, "12:03:04.123  ", 14) == 0);
	CHECK_STR(out.data + 14, want);
}

static void every_kind_reads_well(void)
{
	check("\"kind\":\"sandbox.create\",\"template\":\"host\",\"name\":\"web\",\"hostname\":\"h\","
	      "\"profile\":\"dev\",\"mode\":\"rootless\",\"mounts\":[\"/a\",\"/b\"]",
	      "        sandbox.create  web from host  (rootless, profile dev, host name h, mounts /a "
	      "/b)\n");
	check("\"kind\":\"sandbox.ready\",\"start_us\":4200",
	      "        sandbox.ready   after 4.2 ms\n");
	check("\"kind\":\"sandbox.end\",\"reason\":\"destroyed\"",
	      "        sandbox.end     destroyed\n");
	check("\"call\":2,\"kind\":\"call.start\",\"argv\":[\"sh\",\"-c\",\"echo it's\"],"
	      "\"cwd\":\"/w\",\"user\":\"user\",\"tty\":true,\"call_id\":\"t-1\","
	      "\"labels\":[\"a=b\",\"c=d\"],\"timeout_ms\":90000,\"op\":\"exec\"",
	      "call 2  call.start      sh -c 'echo it'\\''s'  (id t-1, user user, in /w, tty, "
	      "timeout 1 min 30 s, a=b c=d)\n");
	check("\"call\":2,\"kind\":\"call.start\",\"argv\":[\"/x\"],\"op\":1",
	      "call 2  call.start      read_file /x\n");
	check("\"call\":2,\"kind\":\"call.exit\",\"code\":0,\"reason\":\"exit\","
	      "\"duration_us\":1070000,\"cpu_us\":900,\"maxrss_kb\":2048,\"out_bytes\":210,"
	      "\"err_bytes\":0",
	      "call 2  call.exit       exit 0 after 1.07 s, 210 bytes out  (cpu 900 us, peak 2.0 "
	      "MiB)\n");
	check("\"call\":2,\"kind\":\"call.exit\",\"signal\":9,\"reason\":\"timeout\"",
	      "call 2  call.exit       signal 9 (KILL)  (timeout)\n");
	check("\"call\":2,\"kind\":\"call.failed\",\"error\":\"no such file\"",
	      "call 2  call.failed     no such file\n");
	check("\"call\":2,\"kind\":\"call.idle\"",
	      "call 2  call.idle       its last process is gone\n");
	check("\"call\":2,\"kind\":\"process.exec\",\"pid\":14,\"path\":\"/usr/bin/make\","
	      "\"argv\":[\"make\",\"-j2\"]",
	      "call 2  process.exec    make -j2  (/usr/bin/make, pid 14)\n");
	check("\"call\":2,\"kind\":\"process.exec\",\"pid\":14,\"path\":\"/usr/bin/dash\","
	      "\"asked\":\"./build\",\"certain\":false,\"argv\":[\"/bin/sh\",\"./build\"]",
	      "call 2  process.exec    /bin/sh ./build  (/usr/bin/dash, asked for ./build, pid 14, "
	      "not certain)\n");
	check("\"call\":2,\"kind\":\"process.exit\",\"pid\":14,\"unknown\":true",
	      "call 2  process.exit    pid 14 status unknown\n");
	check("\"kind\":\"limit.hit\",\"limit\":\"memory\",\"detail\":\"512 MiB\"",
	      "        limit.hit       memory: 512 MiB\n");
	check("\"kind\":\"trace.gap\",\"count\":3,\"what\":\"exec\"",
	      "        trace.gap       3 lost: exec\n");
}

static void files_say_size_type_and_doubt(void)
{
	check("\"call\":2,\"kind\":\"file.create\",\"path\":\"/a\",\"type\":\"file\",\"size\":1229",
	      "call 2  file.create     /a  (1.2 KiB)\n");
	check("\"call\":2,\"kind\":\"file.create\",\"path\":\"/a\",\"type\":\"dir\",\"size\":40",
	      "call 2  file.create     /a  (dir)\n");
	check("\"call\":2,\"kind\":\"file.rename\",\"path\":\"/b\",\"from\":\"/a\",\"size\":1",
	      "call 2  file.rename     /a -> /b  (1 byte)\n");
	check("\"kind\":\"file.change\",\"path\":\"/b\",\"certain\":false,\"calls\":[2,3,5]",
	      "        file.change     /b  (by call 2, 3 or 5)\n");
	check("\"call\":2,\"kind\":\"file.change\",\"path\":\"/b\",\"mode\":35309,\"size\":0",
	      "call 2  file.change     /b  (0 bytes, setuid)\n");
}

static void an_unknown_kind_shows_its_fields(void)
{
	check("\"kind\":\"dns.query\",\"name\":\"x.org\",\"n\":3,\"l\":[1,\"a\"]",
	      "        dns.query       name=x.org n=3 l=[1,\"a\"]\n");
}

static void hostile_text_cannot_drive_a_terminal(void)
{
	check("\"call\":2,\"kind\":\"file.create\",\"path\":\"/a\\u001b[2J\\n\\u009bx\"",
	      "call 2  file.create     /a\\x1b[2J\\n\\u009bx\n");
	check("\"call\":2,\"kind\":\"file.create\",\"path\":{\"b64\":\"/xs=\"}",
	      "call 2  file.create     \\xff\\x1b\n");
	check("\"call\":2,\"kind\":\"process.exec\",\"argv\":[\"a\\u0000b\",\"\\u001b\"]",
	      "call 2  process.exec    'a\\x00b' '\\x1b'\n");
	check("\"kind\":\"k\\u001b\",\"\\u001b\":{\"\\u001b\":1}",
	      "        k\\x1b           \\x1b={\"\\u001B\":1}\n");
}

static void wrong_types_are_harmless(void)
{
	check("\"kind\":\"process.exec\",\"argv\":1,\"path\":[],\"pid\":\"x\",\"cwd\":{}",
	      "        process.exec\n");
	check("\"kind\":\"file.change\",\"path\":7,\"certain\":false,\"calls\":\"x\",\"mode\":\"y\"",
	      "        file.change     7  (by an unknown call)\n");
	check("\"kind\":\"call.exit\",\"code\":\"x\",\"duration_us\":null",
	      "        call.exit       status unknown\n");
}

static void long_arguments_are_cut(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(1 << 20), line = BUF_INIT(1 << 20);
	struct trace_text t;

	in_utc(&t, false);
	CHECK(buf_add_c(&line, HEAD ",\"kind\":\"process.exec\",\"argv\":[\"x\"") == 0);
	for (int i = 0; i < 2000; i++)
		CHECK(buf_add_c(&line, ",\"abcdefgh\"") == 0);
	CHECK(buf_add_c(&line, "]" TAIL) == 0);
	show(&t, line.data, &out);
	CHECK(out.len < 400 && strstr(out.data, "\xe2\x80\xa6\n"));
}

static void the_date_is_shown_when_the_day_changes(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(4096);
	struct trace_text t;

	in_utc(&t, false);
	t.day--;
	show(&t, HEAD ",\"kind\":\"call.idle\"" TAIL, &out);
	CHECK(strncmp(out.data, "2026-01-02\n12:03:04.123  ", 25) == 0);
	buf_clear(&out);
	show(&t, HEAD ",\"kind\":\"call.idle\"" TAIL, &out);
	CHECK(strncmp(out.data, "12:03:04.123  ", 14) == 0);
}

static void a_wrong_time_is_shown_as_it_is(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(4096);
	struct trace_text t;

	in_utc(&t, false);
	show(&t,
	     "{\"seq\":1,\"time\":\"soon\\u001b\",\"sandbox\":\"s\",\"kind\":\"call.idle\"" TAIL,
	     &out);
	CHECK(strncmp(out.data, "soon\\x1b  ", 10) == 0);
}

static void color_is_used_only_on_request(void)
{
	auto_done(buf_done) struct buf out = BUF_INIT(4096);
	struct trace_text t;

	in_utc(&t, true);
	show(&t, HEAD ",\"call\":3,\"kind\":\"call.idle\"" TAIL, &out);
	CHECK_STR(out.data, "\033[2m12:03:04.123\033[0m  call 3  \033[36mcall.idle     \033[0m  "
			    "its last process is gone\n");
}

T_MAIN(T(every_kind_reads_well), T(files_say_size_type_and_doubt),
       T(an_unknown_kind_shows_its_fields), T(hostile_text_cannot_drive_a_terminal),
       T(wrong_types_are_harmless), T(long_arguments_are_cut),
       T(the_date_is_shown_when_the_day_changes), T(a_wrong_time_is_shown_as_it_is),
       T(color_is_used_only_on_request))
