/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/limits.h"
#include "base/sha256.h"

enum { CHUNK = 64 * 1024 };

void trace_lines_init(struct trace_lines *l, int fd)
{
	*l = (struct trace_lines){ .fd = fd, .in = BUF_INIT(LIMIT_EVENT + 1 + CHUNK) };
}

void trace_lines_done(struct trace_lines *l)
{
	buf_done(&l->in);
}

size_t trace_lines_rest(const struct trace_lines *l)
{
	return l->in.len - l->at;
}

/* Read more input. Returns the count, 0 at the end, or -errno. */
static ssize_t fill(struct trace_lines *l)
{
	ssize_t n;
	int r;

	buf_shift(&l->in, l->at);
	l->at = 0;
	r = buf_reserve(&l->in, CHUNK);
	if (r < 0)
		return r;
	do
		n = read(l->fd, l->in.data + l->in.len, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		buf_grew(&l->in, (size_t)n);
	return n < 0 ? -errno : n;
}

/* The trace continues in another file only after a complete line. */
static bool next_file(struct trace_lines *l)
{
	int fd = l->next ? l->next(l->ctx) : FD_NONE;

	if (fd >= 0)
		l->fd = fd;
	return fd >= 0;
}

int trace_lines_next(struct trace_lines *l, struct str *ret)
{
	size_t seen = 0; /* bytes already searched for a newline */

	for (;;) {
		size_t rest = trace_lines_rest(l);
		const char *start = rest ? l->in.data + l->at : NULL;
		const char *end = rest > seen ? memchr(start + seen, '\n', rest - seen) : NULL;
		ssize_t n;

		if ((end ? (size_t)(end - start) : rest) > LIMIT_EVENT)
			return -E2BIG;
		if (end) {
			*ret = (struct str){ start, (size_t)(end - start) };
			l->at += ret->n + 1;
			l->line++;
			return 1;
		}
		seen = rest;
		n = fill(l);
		if (n == 0 && rest == 0 && next_file(l))
			continue;
		if (n <= 0)
			return (int)n;
	}
}

static int want_number(const json_t *o, const char *key, uint64_t least, uint64_t most,
		       uint64_t *ret, struct err *e)
{
	const json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	if (!v && least == 0)
		return 0;
	if (!json_is_integer(v) || n < 0 || (uint64_t)n < least || (uint64_t)n > most)
		return err_set(e, ERR_INVALID, "'%s' is missing or not a number in its range", key);
	*ret = (uint64_t)n;
	return 0;
}

static int want_text(const json_t *o, const char *key, struct str *ret, struct err *e)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		return err_set(e, ERR_INVALID, "'%s' is missing or not a string", key);
	*ret = (struct str){ json_string_value(v), json_string_length(v) };
	return 0;
}

static int take_fields(struct trace_event *ev, struct err *e)
{
	uint64_t call = 0;

	if (want_number(ev->json, "seq", 1, INT64_MAX, &ev->seq, e) < 0 ||
	    want_number(ev->json, "call", 0, UINT32_MAX, &call, e) < 0 ||
	    want_number(ev->json, "parent", 0, INT64_MAX, &ev->parent, e) < 0 ||
	    want_text(ev->json, "time", &ev->time, e) < 0 ||
	    want_text(ev->json, "sandbox", &ev->sandbox, e) < 0 ||
	    want_text(ev->json, "kind", &ev->kind, e) < 0 ||
	    want_text(ev->json, "prev", &ev->prev, e) < 0)
		return -1;
	if (ev->prev.n != SHA256_HEX - 1)
		return err_set(e, ERR_INVALID, "'prev' is not a hash");
	ev->call = (uint32_t)call;
	return 0;
}

int trace_event_parse(struct str line, struct trace_event *ret, struct err *e)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	json_error_t why = { 0 };

	ev.json = json_loadb(line.n ? line.p : "", line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
			     &why);
	if (!ev.json)
		return err_set(e, ERR_INVALID, "not JSON (at byte %d)", why.position);
	if (!json_is_object(ev.json))
		return err_set(e, ERR_INVALID, "not a JSON object");
	if (take_fields(&ev, e) < 0)
		return -1;
	*ret = ev;
	ev.json = NULL;
	return 0;
}

void trace_event_done(struct trace_event *ev)
{
	json_decref(ev->json);
	ev->json = NULL;
}

static bool eat(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	s->p += prefix.n;
	s->n -= prefix.n;
	return true;
}

static bool eat_number(struct str *s, uint64_t *ret)
{
	size_t i = 0;

	for (*ret = 0; i < s->n && i < 19 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
		*ret = *ret * 10 + (uint64_t)(s->p[i] - '0');
	s->p += i;
	s->n -= i;
	return i > 0;
}

/* A string without escapes, up to its closing quote. */
static bool eat_plain(struct str *s, struct str *ret)
{
	const char *end = memchr(s->p, '"', s->n);

	if (!end || memchr(s->p, '\\', (size_t)(end - s->p)))
		return false;
	*ret = (struct str){ s->p, (size_t)(end - s->p) };
	s->p += ret->n + 1;
	s->n -= ret->n + 1;
	return true;
}

bool trace_event_glance(struct str line, struct str *ret_kind, uint32_t *ret_call)
{
	uint64_t seq, call = 0, parent;
	struct str skipped, kind;

	if (!eat(&line, STR("{\"seq\":")) || !eat_number(&line, &seq) ||
	    !eat(&line, STR(",\"time\":\"")) || !eat_plain(&line, &skipped) ||
	    !eat(&line, STR(",\"sandbox\":\"")) || !eat_plain(&line, &skipped))
		return false;
	if (eat(&line, STR(",\"call\":")) && (!eat_number(&line, &call) || call > UINT32_MAX))
		return false;
	if (eat(&line, STR(",\"parent\":")) && !eat_number(&line, &parent))
		return false;
	if (!eat(&line, STR(",\"kind\":\"")) || !eat_plain(&line, &kind))
		return false;
	*ret_kind = kind;
	*ret_call = (uint32_t)call;
	return true;
}

int trace_value_text(const json_t *value, struct buf *out)
{
	const json_t *b64 = json_object_get(value, "b64");

	if (json_is_string(value))
		return buf_add(out, json_string_value(value), json_string_length(value));
	if (!json_is_string(b64))
		return -EINVAL;
	return b64_decode(out, (struct str){ json_string_value(b64), json_string_length(b64) });
}
