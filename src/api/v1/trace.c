/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/trace in the front: sends the rounds that workers prepare (trace_round.h). */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/error.h"
#include "api/v1/trace_round.h"
#include "api/v1/view.h"
#include "base/clock.h"

struct tracing {
	struct v1 *v;
	struct trace_round at;
	struct v1_sender sender;
	int watch;
	struct loop_io io;
	struct loop_timer timer;
	bool events, begun;
};

static void ask_round(struct tracing *t);

static void stop_waiting(struct tracing *t)
{
	struct loop *loop = &t->v->q->front->loop;

	loop_del(loop, &t->io);
	loop_timer_stop(loop, &t->timer);
	fd_close(&t->watch);
}

static void tracing_free(struct v1 *v)
{
	struct tracing *t = v->own;

	stop_waiting(t);
	v1_sender_drop(&t->sender);
	free(t);
}

static void on_grown(struct loop_io *io, uint32_t events)
{
	struct tracing *t = container_of(io, struct tracing, io);

	(void)events;
	stop_waiting(t);
	ask_round(t);
}

static void on_second(struct loop_timer *timer)
{
	struct tracing *t = container_of(timer, struct tracing, timer);

	stop_waiting(t);
	ask_round(t);
}

static void on_sent(struct v1_sender *s, int err)
{
	struct tracing *t = container_of(s, struct tracing, sender);
	struct loop *loop = &t->v->q->front->loop;

	if (err < 0) {
		http_request_cut(s->http);
	} else if (t->at.state == TRACE_END) {
		http_answer_end(s->http);
	} else if (t->at.state == TRACE_MORE) {
		ask_round(t);
	} else {
		if (t->watch >= 0)
			(void)loop_add(loop, &t->io, t->watch, EPOLLIN, on_grown);
		loop_timer_set(loop, &t->timer, NS_PER_S, on_second);
	}
}

static void begin_answer(struct tracing *t)
{
	if (t->begun)
		return;
	t->begun = true;
	(void)http_answer_begin(t->v->q->http, 200,
				t->events ? "text/event-stream" : "application/x-ndjson",
				HTTP_LENGTH_UNKNOWN);
}

static int take_round(struct tracing *t, const struct job_answer *a)
{
	char text[TRACE_ROUND_TEXT];
	struct api_answer answer;

	if (api_answer_read(a->out, &answer) < 0 || !str_copy(text, sizeof text, answer.next) ||
	    trace_round_read(text, &t->at) < 0 || a->nfds < 1)
		return -1;
	t->sender.fd = a->fds[0];
	t->watch = a->nfds > 1 ? a->fds[1] : FD_NONE;
	return 0;
}

static void on_round(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct tracing *t = ctx;
	struct http_request *r = t->v->q->http;

	t->v->q->job = NULL;
	if (!why && take_round(t, a) == 0) {
		begin_answer(t);
		v1_sender_start(&t->sender);
		return;
	}
	/* The sandbox was removed with its trace while somebody followed: that is its end. */
	if (t->begun && why && why->kind == ERR_NOT_FOUND)
		http_answer_end(r);
	else if (t->begun)
		http_request_cut(r);
	else if (why)
		api_refuse_err(r, why);
	else
		api_refuse(r, 500, "a worker sent a malformed answer");
}

static void ask_round(struct tracing *t)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	char round[TRACE_ROUND_TEXT];
	struct json j;

	trace_round_write(&t->at, round);
	json_init(&j, &b);
	json_obj(&j);
	json_put_c(&j, "round", round);
	json_put_bool(&j, "events", t->events);
	json_end(&j);
	if (json_done(&j) == 0)
		api_start_job(t->v->q, "v1.trace", buf_str(&b), on_round, t);
	if (!t->v->q->job && t->begun)
		http_request_cut(t->v->q->http);
}

static void on_room(struct http_request *r)
{
	struct tracing *t = v1_of(r)->own;

	v1_sender_room(&t->sender);
}

void v1_trace(struct api_request *q)
{
	static const struct http_handler handler = { .room = on_room, .ended = v1_ended };
	struct v1 *v = v1_new(q);
	struct tracing *t = v ? calloc(1, sizeof *t) : NULL;

	if (!t) {
		if (v)
			api_refuse(q->http, 503, "out of memory");
		return;
	}
	*t = (struct tracing){ .v = v,
			       .at = { .left = v1_param_number(q, "limit", UINT64_MAX),
				       .state = TRACE_MORE },
			       .sender = { .http = q->http, .fd = FD_NONE, .done = on_sent },
			       .watch = FD_NONE,
			       .io.fd = FD_NONE,
			       .events = view_wants_events(v) };
	v->own = t;
	v->own_done = tracing_free;
	q->http->handler = &handler;
	ask_round(t);
}
