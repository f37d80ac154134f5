/* SPDX-License-Identifier: Apache-2.0 */
/* Routes about one call: its output, its end, its input. */
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "api/v1/view.h"

enum { WAIT_MS = 60000 };

static void on_room(struct http_request *r)
{
	view_room(v1_of(r)->own);
}

static const struct http_handler stream = { .room = on_room, .ended = v1_ended };

/* ---- output ---- */

static uint64_t offset_of(const struct v1 *v)
{
	const struct str *last = http_request_header(v->q->http, "last-event-id");
	char text[24];

	/* A stream of events goes on behind the last one that arrived. */
	if (last && view_wants_events(v) && str_copy(text, sizeof text, *last))
		return strtoull(text, NULL, 10);
	return v1_param_number(v->q, "from", 0);
}

static int on_row(struct link_ask *a, const struct frame *f)
{
	struct view *w = container_of(a, struct view, ask);
	struct box *b = box_find(w->v->q->front, w->v->q->id);
	struct link_call_row row;

	if (f->type != MSG_C_CALL)
		return f->type == MSG_C_END ? 0 : -1;
	decode_call_row(f, &row);
	w->left = row.kept_to;
	if (b)
		view_join(w, b, offset_of(w->v), false, 0);
	return 1;
}

static void begin_output(struct v1 *v, struct box *b)
{
	bool events = view_wants_events(v);
	struct view *w = view_new(v, events ? &sink_sse : &sink_raw);
	char which[16];

	if (!w)
		return;
	v->q->http->handler = &stream;
	(void)v1_param(v->q, "stream", which, sizeof which);
	w->only[CALL_STDOUT] = strcmp(which, "stderr") != 0;
	w->only[CALL_STDERR] = strcmp(which, "stdout") != 0;
	w->left = UINT64_MAX;
	if (events || v1_param_is(v->q, "follow", true))
		view_join(w, b, offset_of(v), false, 0);
	else
		view_ask_row(w, b, view_number(v), v->q->sub, on_row);
}

void v1_call_output(struct api_request *q)
{
	v1_with_box(q, begin_output);
}

/* ---- the end ---- */

static void wait_started(struct view *w, const struct call_started *s)
{
	(void)s;
	w->existing = false; /* nothing is repeated here */
}

static void wait_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	struct json j;

	if (why) {
		api_refuse_err(w->v->q->http, why);
		return;
	}
	json_init(&j, &b);
	json_obj(&j);
	view_put_result(&j, r);
	json_end(&j);
	v1_answer(w->v, 200, &j, &b);
}

static const struct view_sink sink_wait = { .started = wait_started, .ended = wait_ended };

static void begin_wait(struct v1 *v, struct box *b)
{
	struct view *w = view_new(v, &sink_wait);

	if (!w)
		return;
	view_wait_at_most(w, v1_param_number(v->q, "timeout_ms", WAIT_MS));
	view_join(w, b, 0, false, LINK_NO_OUTPUT);
}

void v1_call_wait(struct api_request *q)
{
	v1_with_box(q, begin_wait);
}

/* ---- signals and sizes ---- */

static void done_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	struct err e = { 0 };

	(void)r;
	if (!why) {
		(void)err_set(&e, ERR_CONFLICT, "the call has ended");
		(void)err_code(&e, "call.ended", NULL);
		why = &e;
	}
	api_refuse_err(w->v->q->http, why);
}

static void leave(struct view *w)
{
	box_call_done(&w->call);
	http_answer(w->v->q->http, 204, NULL, STR_NONE);
}

static int join_running(struct link_ask *a, const struct frame *f)
{
	struct view *w = container_of(a, struct view, ask);
	struct box *b = box_find(w->v->q->front, w->v->q->id);
	struct link_call_row row;

	if (f->type != MSG_C_CALL)
		return f->type == MSG_C_END ? 0 : -1;
	decode_call_row(f, &row);
	if (!row.running)
		done_ended(w, NULL, NULL);
	else if (b)
		view_join(w, b, row.kept_to, w->writes, LINK_NO_OUTPUT);
	return 1;
}

/* Join it if it still runs: an ended call can be joined, too. */
static void begin_running(struct v1 *v, struct box *b, const struct view_sink *sink, bool writes)
{
	struct view *w = view_new(v, sink);

	if (!w)
		return;
	w->writes = writes;
	view_ask_row(w, b, view_number(v), v->q->sub, join_running);
}

static void signal_started(struct view *w, const struct call_started *s)
{
	(void)s;
	link_call_signal(&w->call.call,
			 view_signal(json_string_value(json_object_get(w->v->body, "signal"))));
	leave(w);
}

static void begin_signal(struct v1 *v, struct box *b)
{
	static const struct view_sink sink = { .started = signal_started, .ended = done_ended };
	struct err e = { 0 };

	if (!view_signal(json_string_value(json_object_get(v->body, "signal")))) {
		(void)err_set(&e, ERR_INVALID, "signal must be a name such as TERM or SIGINT");
		(void)err_field(&e, "signal");
		api_refuse_err(v->q->http, &e);
		return;
	}
	begin_running(v, b, &sink, false);
}

void v1_call_signal(struct api_request *q)
{
	v1_with_box(q, begin_signal);
}

static void resize_started(struct view *w, const struct call_started *s)
{
	const json_t *body = w->v->body;

	(void)s;
	link_call_resize(&w->call.call, (unsigned)json_integer_value(json_object_get(body, "rows")),
			 (unsigned)json_integer_value(json_object_get(body, "cols")));
	leave(w);
}

static void begin_resize(struct v1 *v, struct box *b)
{
	static const struct view_sink sink = { .started = resize_started, .ended = done_ended };

	begin_running(v, b, &sink, false);
}

void v1_call_resize(struct api_request *q)
{
	v1_with_box(q, begin_resize);
}

/* ---- input ---- */

static size_t on_data(struct http_request *r, struct str data)
{
	struct view *w = v1_of(r)->own;

	if (r->status)
		return data.n;
	return w->call.box ? link_call_write(&w->call.call, data) : data.n;
}

static void on_body_end(struct http_request *r)
{
	struct view *w = v1_of(r)->own;

	if (r->status || !w->call.box)
		return;
	if (v1_param_is(w->v->q, "eof", false))
		link_call_eof(&w->call.call);
	leave(w);
}

static void stdin_started(struct view *w, const struct call_started *s)
{
	(void)s;
	(void)http_request_stream(w->v->q->http, 0, false);
}

static void stdin_room(struct view *w)
{
	http_request_resume(w->v->q->http);
}

static void begin_stdin(struct v1 *v, struct box *b)
{
	static const struct http_handler handler = { .data = on_data,
						     .body_end = on_body_end,
						     .ended = v1_ended };
	static const struct view_sink sink = { .started = stdin_started,
					       .room = stdin_room,
					       .ended = done_ended };

	v->q->http->handler = &handler;
	begin_running(v, b, &sink, true);
}

void v1_call_stdin(struct api_request *q)
{
	v1_with_box(q, begin_stdin);
}
