/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/safe.h"
#include "base/signal_name.h"
#include "trace/text_page.h"
#include "trace/text_time.h"

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

static void say_status(struct page *p)
{
	int64_t sig = page_number(p, "signal");
	const char *name = signal_name(sig);

	if (page_has_num(p, "signal"))
		page_sayf(p, name ? "signal %" PRId64 " (%s)" : "signal %" PRId64, sig, name);
	else if (page_has_num(p, "code"))
		page_sayf(p, "exit %" PRId64, page_number(p, "code"));
	else
		page_say(p, "status unknown");
}

static void sandbox_create(struct page *p)
{
	if (page_has(p, "name")) {
		page_say_field(p, "name");
		page_say(p, " ");
	}
	page_say(p, "from ");
	page_say_field(p, "template");
	page_note_field(p, "", "mode");
	page_note_field(p, "profile ", "profile");
	page_note_field(p, "host name ", "hostname");
	if (page_has(p, "mounts")) {
		page_note(p);
		page_say(p, "mounts ");
		page_say_list(p, "mounts");
	}
}

static void sandbox_ready(struct page *p)
{
	if (!page_has_num(p, "start_us"))
		return;
	page_say(p, "after ");
	page_say_duration(p, page_number(p, "start_us"));
}

static void sandbox_end(struct page *p)
{
	page_say_field(p, "reason");
}

static void sandbox_extend(struct page *p)
{
	if (page_number(p, "ttl_ms") == 0) {
		page_say(p, "no end");
		return;
	}
	page_say(p, "ends in ");
	page_say_duration(p, page_number(p, "ttl_ms") * 1000);
}

static void sandbox_timeout(struct page *p)
{
	page_say_field(p, "what");
	page_note_field(p, "", "action");
}

static void say_op(struct page *p)
{
	static const char *const names[] = { "exec",	   "read_file", "write_file", "read_tree",
					     "write_tree", "list",	"watch" };
	int64_t op = page_number(p, "op");

	if (page_has_num(p, "op") && op > 0 && op < (int64_t)ARRAY_LEN(names))
		page_sayf(p, "%s ", names[op]);
	else if (page_has(p, "op") && !page_text_is(p, "op", "exec")) {
		page_say_field(p, "op");
		page_say(p, " ");
	}
}

static void call_start(struct page *p)
{
	say_op(p);
	page_say_argv(p, page_field(p, "argv"));
	page_note_field(p, "id ", "call_id");
	page_note_field(p, "user ", "user");
	page_note_field(p, "in ", "cwd");
	if (page_is_set(p, "tty")) {
		page_note(p);
		page_say(p, "tty");
	}
	if (page_number(p, "timeout_ms") > 0 && page_number(p, "timeout_ms") < INT64_MAX / 1000) {
		page_note(p);
		page_say(p, "timeout ");
		page_say_duration(p, page_number(p, "timeout_ms") * 1000);
	}
	if (page_has(p, "labels")) {
		page_note(p);
		page_say_list(p, "labels");
	}
}

static void say_amount(struct page *p, const char *key, const char *after)
{
	if (page_number(p, key) <= 0)
		return;
	page_say(p, ", ");
	page_say_size(p, page_number(p, key));
	page_say(p, after);
}

static void call_exit(struct page *p)
{
	say_status(p);
	if (page_has_num(p, "duration_us")) {
		page_say(p, " after ");
		page_say_duration(p, page_number(p, "duration_us"));
	}
	say_amount(p, "out_bytes", " out");
	say_amount(p, "err_bytes", " err");
	if (page_has(p, "reason") && !page_text_is(p, "reason", "exit") &&
	    !page_text_is(p, "reason", "signal"))
		page_note_field(p, "", "reason");
	if (page_number(p, "cpu_us") > 0) {
		page_note(p);
		page_say(p, "cpu ");
		page_say_duration(p, page_number(p, "cpu_us"));
	}
	if (page_number(p, "maxrss_kb") > 0 && page_number(p, "maxrss_kb") < INT64_MAX / 1024) {
		page_note(p);
		page_say(p, "peak ");
		page_say_size(p, page_number(p, "maxrss_kb") * 1024);
	}
}

static void call_failed(struct page *p)
{
	page_say_field(p, "error");
}

static void call_idle(struct page *p)
{
	page_say(p, "its last process is gone");
}

static void note_certain(struct page *p)
{
	if (json_is_false(page_field(p, "certain"))) {
		page_note(p);
		page_say(p, "not certain");
	}
}

static void process_exec(struct page *p)
{
	page_say_argv(p, page_field(p, "argv"));
	page_note_field(p, "", "path");
	page_note_field(p, "asked for ", "asked");
	if (page_has_num(p, "pid")) {
		page_note(p);
		page_sayf(p, "pid %" PRId64, page_number(p, "pid"));
	}
	if (page_has_num(p, "ppid")) {
		page_note(p);
		page_sayf(p, "parent %" PRId64, page_number(p, "ppid"));
	}
	page_note_field(p, "in ", "cwd");
	if (page_is_set(p, "argv_cut")) {
		page_note(p);
		page_say(p, "arguments cut");
	}
	note_certain(p);
}

static void process_exit(struct page *p)
{
	page_sayf(p, "pid %" PRId64 " ", page_number(p, "pid"));
	say_status(p);
}

/* "call 2 or 3": the calls that may have done it. */
static void note_candidates(struct page *p)
{
	const json_t *calls = page_field(p, "calls");
	size_t n = json_array_size(calls);

	page_note(p);
	page_say(p, n ? "by call " : "by an unknown call");
	for (size_t i = 0; i < n && i < PAGE_LIST; i++)
		page_sayf(p, "%s%" PRId64,
			  i == 0       ? ""
			  : i + 1 == n ? " or "
				       : ", ",
			  (int64_t)json_integer_value(json_array_get(calls, i)));
	if (n > PAGE_LIST)
		page_sayf(p, " or %zu more", n - PAGE_LIST);
}

static void file_any(struct page *p)
{
	bool regular = !page_has(p, "type") || page_text_is(p, "type", "file");

	if (page_has(p, "from")) {
		page_say_field(p, "from");
		page_say(p, " -> ");
	}
	page_say_field(p, "path");
	if (!regular)
		page_note_field(p, "", "type");
	else if (page_has_num(p, "size")) {
		page_note(p);
		page_say_size(p, page_number(p, "size"));
	}
	if (regular && (page_number(p, "mode") & 06000)) {
		page_note(p);
		page_say(p, page_number(p, "mode") & 04000 ? "setuid" : "setgid");
	}
	if (json_is_false(page_field(p, "certain")))
		note_candidates(p);
}

static void limit_hit(struct page *p)
{
	page_say_field(p, "limit");
	if (page_has(p, "detail"))
		page_say(p, ": ");
	page_say_field(p, "detail");
	if (page_has_num(p, "bytes")) {
		page_say(p, " of ");
		page_say_size(p, page_number(p, "bytes"));
	}
	if (page_has_num(p, "pids"))
		page_sayf(p, " %" PRId64, page_number(p, "pids"));
	if (page_number(p, "count") > 1)
		page_sayf(p, ", %" PRId64 " times", page_number(p, "count"));
}

static void net_any(struct page *p)
{
	static const char *const after[] = { "what",	"part",	  "type", "answer", "sni",
					     "version", "method", "path", "status" };

	page_say_field(p, page_has(p, "name") ? "name" : "address");
	if (page_has_num(p, "port"))
		page_sayf(p, ":%" PRId64, page_number(p, "port"));
	for (size_t i = 0; i < ARRAY_LEN(after); i++)
		if (page_field(p, after[i])) {
			page_say(p, " ");
			page_say_field(p, after[i]);
		}
	if (page_has_num(p, "up")) {
		page_say(p, "  up ");
		page_say_size(p, page_number(p, "up"));
		page_say(p, ", down ");
		page_say_size(p, page_number(p, "down"));
	}
	page_note_field(p, "", page_has(p, "message") ? "message" : "reason");
	page_note_field(p, "refused: ", "refused");
	page_note_field(p, "rule ", "rule");
	note_certain(p);
}

static void trace_gap(struct page *p)
{
	if (page_has_num(p, "count"))
		page_sayf(p, "%" PRId64 " lost: ", page_number(p, "count"));
	page_say_field(p, "what");
}

static void any_event(struct page *p)
{
	static const char *const head[] = { "seq",    "time", "sandbox", "call",
					    "parent", "kind", "prev" };
	const char *key, *gap = "";
	json_t *v;

	json_object_foreach((json_t *)p->fields, key, v)
	{
		bool skip = false;

		for (size_t i = 0; i < ARRAY_LEN(head); i++)
			skip |= strcmp(key, head[i]) == 0;
		if (skip)
			continue;
		page_say(p, gap);
		page_say_safe(p, str_of(key), PAGE_TEXT);
		page_say(p, "=");
		page_say_value(p, v);
		gap = " ";
	}
}

#define CYAN	"\033[36m"
#define BLUE	"\033[34m"
#define GREEN	"\033[32m"
#define YELLOW	"\033[33m"
#define RED	"\033[31m"
#define MAGENTA "\033[35m"

/* Sorted by kind. */
/* clang-format off */
#define KINDS(X) \
	X("call.exit", CYAN, call_exit) \
	X("call.failed", RED, call_failed) \
	X("call.idle", CYAN, call_idle) \
	X("call.start", CYAN, call_start) \
	X("file.change", YELLOW, file_any) \
	X("file.create", GREEN, file_any) \
	X("file.delete", RED, file_any) \
	X("file.rename", YELLOW, file_any) \
	X("limit.hit", RED, limit_hit) \
	X("limit.unenforced", YELLOW, limit_hit) \
	X("net.close", GREEN, net_any) \
	X("net.connect", GREEN, net_any) \
	X("net.deny", RED, net_any) \
	X("net.dial", GREEN, net_any) \
	X("net.dns", GREEN, net_any) \
	X("net.fail", YELLOW, net_any) \
	X("net.gateway", RED, net_any) \
	X("net.http", GREEN, net_any) \
	X("net.ingress", GREEN, net_any) \
	X("net.tls", GREEN, net_any) \
	X("policy.set", "", any_event) \
	X("process.exec", BLUE, process_exec) \
	X("process.exit", BLUE, process_exit) \
	X("sandbox.create", MAGENTA, sandbox_create) \
	X("sandbox.end", MAGENTA, sandbox_end) \
	X("sandbox.extend", MAGENTA, sandbox_extend) \
	X("sandbox.pause", YELLOW, sandbox_end) \
	X("sandbox.ready", MAGENTA, sandbox_ready) \
	X("sandbox.resume", MAGENTA, sandbox_end) \
	X("sandbox.timeout", YELLOW, sandbox_timeout) \
	X("trace.gap", RED, trace_gap)
/* clang-format on */

const char *const trace_kinds[] = {
#define X(kind, color, fn) kind,
	KINDS(X) NULL
#undef X
};

struct look {
	const char *color;
	void (*fn)(struct page *p);
};

static struct look look_of(struct str kind)
{
	static const struct look looks[] = {
#define X(kind, color, fn) { color, fn },
		KINDS(X)
#undef X
	};

	for (size_t i = 0; trace_kinds[i]; i++)
		if (str_is(kind, trace_kinds[i]))
			return looks[i];
	return (struct look){ "", any_event };
}

void trace_text_init(struct trace_text *t, bool color)
{
	time_t now = time(NULL);
	struct tm tm = { 0 };

	(void)localtime_r(&now, &tm);
	*t = (struct trace_text){ .color = color, .day = text_time_day(&tm) };
}

static void say_time(struct page *p, struct trace_text *t, struct str text)
{
	struct tm tm = { 0 };
	int ms = 0;

	if (!text_time_parse(text, &tm, &ms)) {
		page_say_safe(p, text, 40);
		page_say(p, "  ");
		return;
	}
	if (text_time_day(&tm) != t->day)
		page_sayf(p, "%s%04d-%02d-%02d%s\n", t->color ? DIM : "", tm.tm_year + 1900,
			  tm.tm_mon + 1, tm.tm_mday, t->color ? PLAIN : "");
	t->day = text_time_day(&tm);
	page_sayf(p, "%s%02d:%02d:%02d.%03d%s  ", t->color ? DIM : "", tm.tm_hour, tm.tm_min,
		  tm.tm_sec, ms, t->color ? PLAIN : "");
}

int trace_text_event(struct trace_text *t, const struct trace_event *ev, struct buf *out)
{
	struct page p = { .out = out, .fields = ev->json };
	struct look look = look_of(ev->kind);
	char call[16] = "";
	size_t start;

	say_time(&p, t, ev->time);
	if (ev->call)
		(void)snprintf(call, sizeof call, "call %u", ev->call);
	page_sayf(&p, "%-8s%s", call, t->color ? look.color : "");
	start = out->len;
	page_say_safe(&p, ev->kind, 64);
	page_sayf(&p, "%*s%s  ", out->len - start < 14 ? (int)(14 - (out->len - start)) : 0, "",
		  t->color && *look.color ? PLAIN : "");
	look.fn(&p);
	page_notes_end(&p);
	while (p.err == 0 && out->len > start && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	page_say(&p, "\n");
	return p.err;
}
