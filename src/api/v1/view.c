/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "base/b64.h"
#include "base/clock.h"
#include "base/signal_name.h"
#include "base/utf8.h"
#include "ops/json.h"

enum { ROW_MS = 10000, COLLECT_MOST = 1 << 20 };

static struct view *view_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct view, call);
}

static void on_time(struct loop_timer *t)
{
	struct view *w = container_of(t, struct view, timer);

	if (w->number)
		view_answer_row(w, 202);
	else
		w->late = true;
}

void view_wait_at_most(struct view *w, uint64_t ms)
{
	loop_timer_set(&w->v->q->front->loop, &w->timer, ms * NS_PER_MS, on_time);
}

static void on_started(struct link_call *c, const struct call_started *s)
{
	struct view *w = view_of(c);

	w->number = s->call;
	w->offset = s->offset;
	w->existing = s->existing;
	/* A repeated request must not give the command its input twice. */
	if (w->existing && !w->joined)
		buf_clear(&w->in);
	/* Its end, if it is over, comes in the same turn. */
	if (w->late)
		loop_timer_set(&w->v->q->front->loop, &w->timer, 0, on_time);
	if (w->sink->started)
		w->sink->started(w, s);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct view *w = view_of(c);
	int full;

	w->offset += data.n;
	w->held[stream] += data.n;
	full = w->sink->output ? w->sink->output(w, stream, data) : 0;
	if (full == 0 && w->call.box)
		view_room(w);
}

static void on_denied(struct link_call *c, struct str fields)
{
	struct view *w = view_of(c);
	struct call_denied d;

	denied_read(fields, &d);
	if (w->sink->denied)
		w->sink->denied(w, &d);
}

static void on_room(struct link_call *c, size_t bytes)
{
	struct view *w = view_of(c);

	(void)bytes;
	view_flush(w);
	if (w->sink->room)
		w->sink->room(w);
}

static void on_ended(struct link_call *c, const struct call_result *r, const struct err *why)
{
	struct view *w = view_of(c);

	box_call_done(&w->call);
	w->sink->ended(w, why ? NULL : r, why);
}

static void on_gone(struct box_call *c, const struct err *why)
{
	struct view *w = container_of(c, struct view, call);
	struct err e = { 0 };

	(void)why;
	(void)err_set(&e, ERR_UNAVAILABLE, "the connection to sandbox '%s' ended", w->v->q->id);
	(void)err_code(&e, "sandbox.gone", NULL);
	w->sink->ended(w, NULL, &e);
}

static const struct link_call_ops view_ops = { .started = on_started,
					       .output = on_output,
					       .denied = on_denied,
					       .room = on_room,
					       .ended = on_ended };

void view_room(struct view *w)
{
	for (int i = 0; i < 2; i++) {
		size_t n = w->held[i];

		w->held[i] = 0;
		if (n && w->call.box)
			link_call_taken(&w->call.call, (enum call_stream)i, n);
	}
}

void view_flush(struct view *w)
{
	if (!w->call.box)
		return;
	if (w->in.len)
		buf_shift(&w->in, link_call_write(&w->call.call, buf_str(&w->in)));
	if (w->in.len == 0 && w->eof)
		link_call_eof(&w->call.call);
}

static void view_free(struct v1 *v)
{
	struct view *w = v->own;

	loop_timer_stop(&v->q->front->loop, &w->timer);
	box_call_done(&w->call);
	link_ask_drop(&w->ask);
	for (int i = 0; i < 2; i++)
		buf_done(&w->out[i]);
	buf_done(&w->in);
	free(w);
}

struct view *view_new(struct v1 *v, const struct view_sink *sink)
{
	struct view *w = calloc(1, sizeof *w);

	if (!w) {
		api_refuse(v->q->http, 503, "out of memory");
		return NULL;
	}
	w->v = v;
	w->sink = sink;
	w->call.gone = on_gone;
	for (int i = 0; i < 2; i++)
		w->out[i] = (struct buf)BUF_INIT(COLLECT_MOST);
	w->in = (struct buf)BUF_INIT(LIMIT_WS_MESSAGE);
	v->own = w;
	v->own_done = view_free;
	return w;
}

int view_start(struct view *w, struct box *b, const struct call_spec *spec)
{
	return box_call(b, &w->call, spec, &view_ops);
}

uint32_t view_number(const struct v1 *v)
{
	const char *text = v->q->sub;
	unsigned long n = strspn(text, "0123456789") == strlen(text) ? strtoul(text, NULL, 10) : 0;

	return n <= UINT32_MAX ? (uint32_t)n : 0;
}

void view_join(struct view *w, struct box *b, uint64_t offset, bool writes, uint64_t window)
{
	const struct call_attach how = { .call = view_number(w->v),
					 .call_id = w->v->q->sub,
					 .offset = offset,
					 .writes = writes,
					 .window = window };

	w->joined = true;
	if (box_attach(b, &w->call, &how, &view_ops) < 0)
		api_refuse(w->v->q->http, 503, "the sandbox takes no more requests just now");
}

/* ---- rows ---- */

static void on_row_done(struct link_ask *a, const struct err *why)
{
	struct view *w = container_of(a, struct view, ask);

	if (why && !w->v->q->http->status)
		api_refuse_err(w->v->q->http, why);
}

void view_ask_row(struct view *w, struct box *b, uint32_t number, const char *call_id,
		  int (*then)(struct link_ask *a, const struct frame *f))
{
	auto_done(buf_done) struct buf body = BUF_INIT(4096);
	int r = number ? field_put_u64(&body, TAG_CALL, number)
		       : field_put_c(&body, TAG_CALL_ID, call_id);

	w->ask = (struct link_ask){ .answer = then, .done = on_row_done };
	if (r == 0)
		r = link_ask(b->link, &w->ask, MSG_C_CALLS, buf_str(&body), ROW_MS);
	if (r < 0)
		api_refuse(w->v->q->http, 503, "the sandbox takes no more requests just now");
}

static int answer_row(struct link_ask *a, const struct frame *f)
{
	struct view *w = container_of(a, struct view, ask);
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	struct link_call_row row;
	struct json j;

	if (f->type != MSG_C_CALL)
		return f->type == MSG_C_END ? 0 : -1;
	decode_call_row(f, &row);
	json_init(&j, &b);
	json_call(&j, &row);
	if (w->existing)
		http_answer_header(w->v->q->http, "Idempotent-Replayed", STR("true"));
	v1_answer(w->v, w->status, &j, &b);
	return 1;
}

void view_answer_row(struct view *w, int status)
{
	struct box *b = w->call.box;

	w->status = status;
	if (!b)
		return;
	box_call_done(&w->call);
	view_ask_row(w, b, w->number, NULL, answer_row);
}

static void row_started(struct view *w, const struct call_started *s)
{
	(void)s;
	view_answer_row(w, w->existing ? 200 : 201);
}

static void row_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	struct box *b = box_find(w->v->q->front, w->v->q->id);

	if (why || !b) {
		api_refuse_err(w->v->q->http, why);
		return;
	}
	w->status = w->existing ? 200 : 201;
	view_ask_row(w, b, r->call, NULL, answer_row);
}

/* Answers with the call as soon as it has started. */
const struct view_sink sink_row = { .started = row_started, .ended = row_ended };

/* ---- what sinks share ---- */

bool view_wants_events(const struct v1 *v)
{
	const struct str *accept = http_request_header(v->q->http, "accept");

	return accept && memmem(accept->p, accept->n, "text/event-stream", 17);
}

int view_signal(const char *name)
{
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; name && i < 32; i++)
		if (signal_name(i) && strcmp(signal_name(i), name) == 0)
			return i;
	return 0;
}

void view_put_result(struct json *j, const struct call_result *r)
{
	json_call_result(j, r, r->fields);
	json_put_ms(j, "cpu_ms", r->cpu_us);
	json_put_u64(j, "max_rss_bytes", r->maxrss_kb * 1024);
	json_put_u64(j, "stdout_bytes", r->out_bytes);
	json_put_u64(j, "stderr_bytes", r->err_bytes);
}

void view_put_bytes(struct json *j, struct str data)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_HTTP_WRITE);

	if (utf8_valid(data))
		json_put_str(j, "text", data);
	else if (b64_encode(&b, data) == 0)
		json_put_str(j, "b64", buf_str(&b));
}
