/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/story.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "trace/read.h"

enum { HEAD = 2 * LIMIT_EVENT, TAIL = 4 * LIMIT_EVENT };

/* Text at key, plain or {"b64":…}, cut to fit; "" if there is none. */
static void take_text(const json_t *ev, const char *key, char *out, size_t size)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_EVENT);

	if (trace_value_text(json_object_get(ev, key), &b) < 0 || !b.len)
		return;
	if (b.len >= size)
		buf_cut(&b, size - 1);
	(void)str_copy(out, size, buf_str(&b));
}

static int64_t take_number(const json_t *ev, const char *key)
{
	const json_t *v = json_object_get(ev, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

static void on_first(struct trace_story *s, const struct trace_event *ev)
{
	if (!s->created[0])
		(void)str_copy(s->created, sizeof s->created, ev->time);
	if (str_is(ev->kind, "sandbox.create")) {
		take_text(ev->json, "name", s->name, sizeof s->name);
		take_text(ev->json, "template", s->template_, sizeof s->template_);
	} else if (str_is(ev->kind, "call.start") && !s->argv) {
		s->argv = json_dumps(json_object_get(ev->json, "argv"), JSON_COMPACT);
	}
}

static void on_last(struct trace_story *s, const struct trace_event *ev)
{
	s->events = ev->seq;
	(void)str_copy(s->last, sizeof s->last, ev->time);
	if (str_is(ev->kind, "sandbox.end")) {
		s->has_end = true;
		take_text(ev->json, "cause", s->cause, sizeof s->cause);
		take_text(ev->json, "reason", s->reason, sizeof s->reason);
		take_text(ev->json, "by", s->by, sizeof s->by);
		s->by_pid = take_number(ev->json, "by_pid");
		s->by_uid = take_number(ev->json, "by_uid");
	} else if (str_is(ev->kind, "call.exit") || str_is(ev->kind, "call.failed")) {
		s->call = ev->call;
		s->call_reason[0] = '\0';
		take_text(ev->json, "reason", s->call_reason, sizeof s->call_reason);
		s->code = take_number(ev->json, "code");
		s->signal = take_number(ev->json, "signal");
	}
}

/* Most lines are of other kinds; only the last of them counts, for its time. */
static bool is_wanted(struct str line, bool is_tail)
{
	struct str kind;
	uint32_t call;

	if (!trace_event_glance(line, &kind, &call))
		return true;
	if (!is_tail)
		return str_is(kind, "sandbox.create") || str_is(kind, "call.start");
	return str_is(kind, "sandbox.end") || str_starts(kind, STR("call."));
}

static void read_part(int fd, off_t from, size_t size, bool is_tail, struct trace_story *s,
		      void (*fn)(struct trace_story *s, const struct trace_event *ev))
{
	auto_done(buf_done) struct buf b = BUF_INIT(TAIL);
	const char *at, *end;
	ssize_t n;

	if (buf_reserve(&b, size) < 0)
		return;
	n = pread(fd, b.data, size, from);
	buf_grew(&b, n > 0 ? (size_t)n : 0);
	at = b.data;
	if (from > 0 && b.len) { /* skip a partial first line */
		const char *nl = memchr(b.data, '\n', b.len);

		at = nl ? nl + 1 : b.data + b.len;
	}
	for (; b.len && (end = memchr(at, '\n', (size_t)(b.data + b.len - at))); at = end + 1) {
		auto_done(trace_event_done) struct trace_event ev = { 0 };
		struct str line = { at, (size_t)(end - at) };
		bool last = end + 1 == b.data + b.len;
		struct err ignored = { 0 };

		if ((last || is_wanted(line, is_tail)) &&
		    trace_event_parse(line, &ev, &ignored) == 0)
			fn(s, &ev);
	}
}

void trace_story_read(int first, int last, struct trace_story *ret)
{
	struct trace_story s = { .code = -1, .signal = -1, .by_pid = -1, .by_uid = -1 };
	struct stat st = { 0 };

	read_part(first, 0, HEAD, false, &s, on_first);
	(void)fstat(last, &st);
	read_part(last, st.st_size > TAIL ? st.st_size - TAIL : 0, TAIL, true, &s, on_last);
	*ret = s;
}

void trace_story_done(struct trace_story *s)
{
	free(s->argv);
	s->argv = NULL;
}
