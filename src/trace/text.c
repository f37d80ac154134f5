/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/safe.h"

enum {
	ARGV_MOST = 320, /* shown of a command */
	TEXT_MOST = 640, /* shown of any other text: a deep path has room */
	LIST_MOST = 8,	 /* shown of an array */
};

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* Where a line is put together. The first failure is kept. */
struct page {
	struct buf *out;
	const json_t *fields;
	int err;
	int notes; /* written so far */
};

static void say(struct page *p, const char *text)
{
	if (p->err == 0)
		p->err = buf_add_c(p->out, text);
}

__attribute__((format(printf, 2, 3))) static void sayf(struct page *p, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	say(p, text);
}

static void say_safe(struct page *p, struct str text, size_t most)
{
	if (p->err == 0)
		p->err = text_safe_cut(p->out, text, most);
}

static const json_t *field(const struct page *p, const char *key)
{
	return json_object_get(p->fields, key);
}

static int64_t num(const struct page *p, const char *key)
{
	return json_integer_value(field(p, key));
}

static bool has_num(const struct page *p, const char *key)
{
	return json_is_integer(field(p, key));
}

static bool is_set(const struct page *p, const char *key)
{
	return json_is_true(field(p, key));
}

/* Whether there is a text, or a list, with something in it. */
static bool has(const struct page *p, const char *key)
{
	const json_t *v = field(p, key);

	return json_string_length(v) > 0 || json_object_size(v) > 0 || json_array_size(v) > 0;
}

static bool text_is(const struct page *p, const char *key, const char *want)
{
	const char *v = json_string_value(field(p, key));

	return v && strcmp(v, want) == 0;
}

static void say_value(struct page *p, const json_t *v)
{
	auto_done(buf_done) struct buf raw = BUF_INIT(LIMIT_EVENT);
	auto_free char *dump = NULL;

	if (trace_value_text(v, &raw) == 0) {
		say_safe(p, buf_str(&raw), TEXT_MOST);
		return;
	}
	dump = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	say_safe(p, str_of(dump), TEXT_MOST);
}

static void say_field(struct page *p, const char *key)
{
	if (field(p, key))
		say_value(p, field(p, key));
}

/* Notes stand in parentheses after the main part: note() opens or separates them. */
static void note(struct page *p)
{
	say(p, p->notes++ ? ", " : "  (");
}

static void note_field(struct page *p, const char *before, const char *key)
{
	if (!has(p, key))
		return;
	note(p);
	say(p, before);
	say_field(p, key);
}

static void notes_end(struct page *p)
{
	if (p->notes)
		say(p, ")");
}

static void say_size(struct page *p, int64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes / 1024;
	size_t u = 0;

	if (bytes < 1024) {
		sayf(p, "%" PRId64 " byte%s", bytes, bytes == 1 ? "" : "s");
		return;
	}
	for (; v >= 1024 && u + 1 < ARRAY_LEN(units); u++)
		v /= 1024;
	sayf(p, v < 10 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void say_duration(struct page *p, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 1000)
		sayf(p, "%" PRId64 " us", us);
	else if (s == 0)
		sayf(p, us < 10000 ? "%.1f ms" : "%.0f ms", (double)us / 1e3);
	else if (s < 60)
		sayf(p, s < 10 ? "%.2f s" : "%.1f s", (double)us / 1e6);
	else if (s < 3600)
		sayf(p, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
	else
		sayf(p, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
}

/* Bytes above ASCII are left to text_safe_cut(). */
static bool needs_quotes(struct str arg)
{
	for (size_t i = 0; i < arg.n; i++) {
		unsigned char c = (unsigned char)arg.p[i];

		if (c < 0x80 && !isalnum(c) && (c == 0 || !strchr("_@%+=:,./-", c)))
			return true;
	}
	return arg.n == 0;
}

/* One argument as a shell would take it. */
static int add_arg(struct buf *line, struct str arg)
{
	int r = 0;

	if (!needs_quotes(arg))
		return buf_add_str(line, arg);
	r = buf_add_c(line, "'");
	for (size_t i = 0; i < arg.n && r == 0; i++)
		r = arg.p[i] == '\'' ? buf_add_c(line, "'\\''") : buf_add(line, arg.p + i, 1);
	return r < 0 ? r : buf_add_c(line, "'");
}

static void say_argv(struct page *p, const json_t *argv)
{
	auto_done(buf_done) struct buf line = BUF_INIT(4 * LIMIT_EVENT);
	size_t n = json_array_size(argv);
	int r = 0;

	for (size_t i = 0; i < n && r == 0 && line.len <= ARGV_MOST; i++) {
		auto_done(buf_done) struct buf arg = BUF_INIT(LIMIT_EVENT);

		if (i > 0)
			r = buf_add_c(&line, " ");
		if (r == 0 && trace_value_text(json_array_get(argv, i), &arg) == 0)
			r = add_arg(&line, buf_str(&arg));
	}
	if (p->err == 0)
		p->err = r;
	say_safe(p, buf_str(&line), ARGV_MOST);
}

static void say_list(struct page *p, const char *key)
{
	const json_t *list = field(p, key);
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && i < LIST_MOST; i++) {
		if (i > 0)
			say(p, " ");
		say_value(p, json_array_get(list, i));
	}
	if (n > LIST_MOST)
		sayf(p, " and %zu more", n - LIST_MOST);
}

static void say_status(struct page *p)
{
	int64_t sig = num(p, "signal");
	const char *name = sig > 0 && sig < 65 ? sigabbrev_np((int)sig) : NULL;

	if (has_num(p, "signal"))
		sayf(p, name ? "signal %" PRId64 " (%s)" : "signal %" PRId64, sig, name);
	else if (has_num(p, "code"))
		sayf(p, "exit %" PRId64, num(p, "code"));
	else
		say(p, "status unknown");
}

static void sandbox_create(struct page *p)
{
	if (has(p, "name")) {
		say_field(p, "name");
		say(p, " ");
	}
	say(p, "from ");
	say_field(p, "template");
	note_field(p, "", "mode");
	note_field(p, "profile ", "profile");
	note_field(p, "host name ", "hostname");
	if (has(p, "mounts")) {
		note(p);
		say(p, "mounts ");
		say_list(p, "mounts");
	}
}

static void sandbox_ready(struct page *p)
{
	if (!has_num(p, "start_us"))
		return;
	say(p, "after ");
	say_duration(p, num(p, "start_us"));
}

static void sandbox_end(struct page *p)
{
	say_field(p, "reason");
}

static void sandbox_extend(struct page *p)
{
	if (num(p, "ttl_ms") == 0) {
		say(p, "no end");
		return;
	}
	say(p, "ends in ");
	say_duration(p, num(p, "ttl_ms") * 1000);
}

static void sandbox_timeout(struct page *p)
{
	say_field(p, "what");
	note_field(p, "", "action");
}

static void say_op(struct page *p)
{
	static const char *const names[] = { "exec", "read_file", "write_file", "read_tree",
					     "write_tree" };
	int64_t op = num(p, "op");

	if (has_num(p, "op") && op > 0 && op < (int64_t)ARRAY_LEN(names))
		sayf(p, "%s ", names[op]);
	else if (has(p, "op") && !text_is(p, "op", "exec")) {
		say_field(p, "op");
		say(p, " ");
	}
}

static void call_start(struct page *p)
{
	say_op(p);
	say_argv(p, field(p, "argv"));
	note_field(p, "id ", "call_id");
	note_field(p, "user ", "user");
	note_field(p, "in ", "cwd");
	if (is_set(p, "tty")) {
		note(p);
		say(p, "tty");
	}
	if (num(p, "timeout_ms") > 0 && num(p, "timeout_ms") < INT64_MAX / 1000) {
		note(p);
		say(p, "timeout ");
		say_duration(p, num(p, "timeout_ms") * 1000);
	}
	if (has(p, "labels")) {
		note(p);
		say_list(p, "labels");
	}
}

static void say_amount(struct page *p, const char *key, const char *after)
{
	if (num(p, key) <= 0)
		return;
	say(p, ", ");
	say_size(p, num(p, key));
	say(p, after);
}

static void call_exit(struct page *p)
{
	say_status(p);
	if (has_num(p, "duration_us")) {
		say(p, " after ");
		say_duration(p, num(p, "duration_us"));
	}
	say_amount(p, "out_bytes", " out");
	say_amount(p, "err_bytes", " err");
	if (has(p, "reason") && !text_is(p, "reason", "exit") && !text_is(p, "reason", "signal"))
		note_field(p, "", "reason");
	if (num(p, "cpu_us") > 0) {
		note(p);
		say(p, "cpu ");
		say_duration(p, num(p, "cpu_us"));
	}
	if (num(p, "maxrss_kb") > 0 && num(p, "maxrss_kb") < INT64_MAX / 1024) {
		note(p);
		say(p, "peak ");
		say_size(p, num(p, "maxrss_kb") * 1024);
	}
}

static void call_failed(struct page *p)
{
	say_field(p, "error");
}

static void call_idle(struct page *p)
{
	say(p, "its last process is gone");
}

static void process_exec(struct page *p)
{
	say_argv(p, field(p, "argv"));
	note_field(p, "", "path");
	if (has_num(p, "pid")) {
		note(p);
		sayf(p, "pid %" PRId64, num(p, "pid"));
	}
	if (has_num(p, "ppid")) {
		note(p);
		sayf(p, "parent %" PRId64, num(p, "ppid"));
	}
	note_field(p, "in ", "cwd");
	if (is_set(p, "argv_cut")) {
		note(p);
		say(p, "arguments cut");
	}
}

static void process_exit(struct page *p)
{
	sayf(p, "pid %" PRId64 " ", num(p, "pid"));
	say_status(p);
}

/* "call 2 or 3": the calls that may have done it. */
static void note_candidates(struct page *p)
{
	const json_t *calls = field(p, "calls");
	size_t n = json_array_size(calls);

	note(p);
	say(p, n ? "by call " : "by an unknown call");
	for (size_t i = 0; i < n && i < LIST_MOST; i++)
		sayf(p, "%s%" PRId64,
		     i == 0	  ? ""
		     : i + 1 == n ? " or "
				  : ", ",
		     (int64_t)json_integer_value(json_array_get(calls, i)));
	if (n > LIST_MOST)
		sayf(p, " or %zu more", n - LIST_MOST);
}

static void file_any(struct page *p)
{
	bool regular = !has(p, "type") || text_is(p, "type", "file");

	if (has(p, "from")) {
		say_field(p, "from");
		say(p, " -> ");
	}
	say_field(p, "path");
	if (!regular)
		note_field(p, "", "type");
	else if (has_num(p, "size")) {
		note(p);
		say_size(p, num(p, "size"));
	}
	if (regular && (num(p, "mode") & 06000)) {
		note(p);
		say(p, num(p, "mode") & 04000 ? "setuid" : "setgid");
	}
	if (json_is_false(field(p, "certain")))
		note_candidates(p);
}

static void limit_hit(struct page *p)
{
	say_field(p, "limit");
	if (has(p, "detail"))
		say(p, ": ");
	say_field(p, "detail");
	if (has_num(p, "bytes")) {
		say(p, " of ");
		say_size(p, num(p, "bytes"));
	}
	if (has_num(p, "pids"))
		sayf(p, " %" PRId64, num(p, "pids"));
	if (num(p, "count") > 1)
		sayf(p, ", %" PRId64 " times", num(p, "count"));
}

static void net_any(struct page *p)
{
	static const char *const after[] = { "what",	"type",	  "answer", "sni",
					     "version", "method", "path",   "status" };

	say_field(p, has(p, "name") ? "name" : "address");
	if (has_num(p, "port"))
		sayf(p, ":%" PRId64, num(p, "port"));
	for (size_t i = 0; i < ARRAY_LEN(after); i++) {
		say(p, field(p, after[i]) ? " " : "");
		say_field(p, after[i]);
	}
	for (int i = 0; i < 2 && has_num(p, "up"); i++) {
		say(p, i ? ", down " : "  up ");
		say_size(p, num(p, i ? "down" : "up"));
	}
	note_field(p, "", has(p, "message") ? "message" : "reason");
	note_field(p, "rule ", "rule");
}
static void trace_gap(struct page *p)
{
	if (has_num(p, "count"))
		sayf(p, "%" PRId64 " lost: ", num(p, "count"));
	say_field(p, "what");
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
		say(p, gap);
		say_safe(p, str_of(key), TEXT_MOST);
		say(p, "=");
		say_value(p, v);
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
	X("net.close", GREEN, net_any) X("net.connect", GREEN, net_any) \
	X("net.deny", RED, net_any) X("net.dns", GREEN, net_any) X("net.fail", YELLOW, net_any) \
	X("net.gateway", RED, net_any) X("net.http", GREEN, net_any) \
	X("net.ingress", GREEN, net_any) X("net.tls", GREEN, net_any) X("policy.set", "", any_event) \
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

static int day_of(const struct tm *tm)
{
	return tm->tm_year * 1000 + tm->tm_yday;
}

void trace_text_init(struct trace_text *t, bool color)
{
	time_t now = time(NULL);
	struct tm tm = { 0 };

	(void)localtime_r(&now, &tm);
	*t = (struct trace_text){ .color = color, .day = day_of(&tm) };
}

/* False where the text is not a time as clock_text() writes it. */
static bool parse_time(struct str text, struct tm *ret, int *ret_ms)
{
	char copy[40];
	const char *rest;
	struct tm utc = { 0 };
	int us = 0, used = 0;
	time_t at;

	if (!str_copy(copy, sizeof copy, text))
		return false;
	rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!rest || sscanf(rest, ".%6dZ%n", &us, &used) != 1 || rest[used] != '\0' || used != 8)
		return false;
	at = timegm(&utc);
	*ret_ms = us / 1000;
	return localtime_r(&at, ret) != NULL;
}

static void say_time(struct page *p, struct trace_text *t, struct str text)
{
	struct tm tm = { 0 };
	int ms = 0;

	if (!parse_time(text, &tm, &ms)) {
		say_safe(p, text, 40);
		say(p, "  ");
		return;
	}
	if (day_of(&tm) != t->day)
		sayf(p, "%s%04d-%02d-%02d%s\n", t->color ? DIM : "", tm.tm_year + 1900,
		     tm.tm_mon + 1, tm.tm_mday, t->color ? PLAIN : "");
	t->day = day_of(&tm);
	sayf(p, "%s%02d:%02d:%02d.%03d%s  ", t->color ? DIM : "", tm.tm_hour, tm.tm_min, tm.tm_sec,
	     ms, t->color ? PLAIN : "");
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
	sayf(&p, "%-8s%s", call, t->color ? look.color : "");
	start = out->len;
	say_safe(&p, ev->kind, 64);
	sayf(&p, "%*s%s  ", out->len - start < 14 ? (int)(14 - (out->len - start)) : 0, "",
	     t->color && *look.color ? PLAIN : "");
	look.fn(&p);
	notes_end(&p);
	while (p.err == 0 && out->len > start && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	say(&p, "\n");
	return p.err;
}
