/* SPDX-License-Identifier: Apache-2.0 */
/* Results, events and plain bytes of a call. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/error.h"
#include "api/v1/view.h"
#include "ops/json.h"

enum { PIECE = 32 * 1024, EVENT_MOST = 128 * 1024 };

/* ---- a result, with the end of the output ---- */

static int collect_output(struct view *w, enum call_stream stream, struct str data)
{
	struct buf *b = &w->out[stream];
	size_t over;

	/* What comes in is at most a frame of data, far below the ceiling. */
	over = b->len + data.n > b->max ? b->len + data.n - b->max : 0;
	w->cut[stream] += over;
	buf_shift(b, over);
	if (buf_add_str(b, data) < 0)
		w->cut[stream] += data.n;
	return 0;
}

static void put_output(struct json *j, const char *key, const struct view *w, int stream)
{
	char cut[32];

	json_put_str(j, key, w->out[stream].len ? buf_str(&w->out[stream]) : STR(""));
	(void)snprintf(cut, sizeof cut, "%s_cut_bytes", key);
	json_put_u64(j, cut, w->cut[stream]);
}

static void collect_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_ANSWER);
	struct json j;

	if (why) {
		api_refuse_err(w->v->q->http, why);
		return;
	}
	json_init(&j, &b);
	json_obj(&j);
	view_put_result(&j, r);
	put_output(&j, "stdout", w, CALL_STDOUT);
	put_output(&j, "stderr", w, CALL_STDERR);
	json_end(&j);
	if (w->existing)
		http_answer_header(w->v->q->http, "Idempotent-Replayed", STR("true"));
	v1_answer(w->v, 200, &j, &b);
}

const struct view_sink sink_collect = { .output = collect_output, .ended = collect_ended };

/* ---- events ---- */

/* id: where a client goes on after this event; empty: as before. */
static int send_event(struct view *w, const char *event, bool with_id, const struct json *j,
		      const struct buf *b)
{
	char id[24] = "";

	if (json_done(j) < 0)
		return 0;
	if (with_id)
		(void)snprintf(id, sizeof id, "%" PRIu64, w->offset);
	return http_answer_event(w->v->q->http, str_of(event), str_of(id), buf_str(b));
}

static void sse_started(struct view *w, const struct call_started *s)
{
	auto_done(buf_done) struct buf b = BUF_INIT(EVENT_MOST);
	struct json j;

	w->begun = true;
	http_answer_header(w->v->q->http, "Cache-Control", STR("no-store"));
	(void)http_answer_begin(w->v->q->http, 200, "text/event-stream", HTTP_LENGTH_UNKNOWN);
	json_init(&j, &b);
	json_obj(&j);
	json_put_u64(&j, "call", s->call);
	json_put_i64(&j, "pid", s->pid);
	json_put_bool(&j, "existing", s->existing);
	json_put_u64(&j, "offset", s->offset);
	json_put_u64(&j, "dropped_bytes", s->dropped);
	json_end(&j);
	(void)send_event(w, "started", true, &j, &b);
}

static int sse_output(struct view *w, enum call_stream stream, struct str data)
{
	uint64_t end = w->offset;
	int full = 0;

	w->offset -= data.n;
	while (data.n) {
		auto_done(buf_done) struct buf b = BUF_INIT(EVENT_MOST * 4);
		struct str piece = { data.p, data.n < PIECE ? data.n : PIECE };
		struct json j;

		w->offset += piece.n;
		json_init(&j, &b);
		json_obj(&j);
		view_put_bytes(&j, piece);
		json_end(&j);
		full |= send_event(w, stream == CALL_STDOUT ? "stdout" : "stderr", true, &j, &b);
		data.p += piece.n;
		data.n -= piece.n;
	}
	w->offset = end;
	return full;
}

static void sse_denied(struct view *w, const struct call_denied *d)
{
	auto_done(buf_done) struct buf b = BUF_INIT(EVENT_MOST);
	struct json j;

	json_init(&j, &b);
	json_denied(&j, d);
	(void)send_event(w, "denied", false, &j, &b);
}

static void sse_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	auto_done(buf_done) struct buf b = BUF_INIT(EVENT_MOST);
	struct json j;

	if (!w->begun) {
		api_refuse_err(w->v->q->http, why);
		return;
	}
	if (why) {
		if (v1_error_put(&b, v1_error_status(why), why) == 0)
			(void)http_answer_event(w->v->q->http, STR("error"), STR(""), buf_str(&b));
	} else {
		json_init(&j, &b);
		json_obj(&j);
		view_put_result(&j, r);
		json_end(&j);
		(void)send_event(w, "exit", false, &j, &b);
	}
	http_answer_end(w->v->q->http);
}

const struct view_sink sink_sse = {
	.started = sse_started, .output = sse_output, .denied = sse_denied, .ended = sse_ended
};

/* ---- plain bytes ---- */

static void raw_started(struct view *w, const struct call_started *s)
{
	struct http_request *r = w->v->q->http;

	w->begun = true;
	http_answer_headerf(r, "Cay-Output-Offset", "%" PRIu64, s->offset);
	http_answer_headerf(r, "Cay-Output-Dropped", "%" PRIu64, s->dropped);
	(void)http_answer_begin(r, 200, "application/octet-stream", HTTP_LENGTH_UNKNOWN);
	/* left: where the output ended when the client asked; it wants no more than that. */
	if (w->left != UINT64_MAX && s->offset >= w->left) {
		box_call_done(&w->call);
		http_answer_end(r);
	}
}

static int raw_output(struct view *w, enum call_stream stream, struct str data)
{
	struct http_request *r = w->v->q->http;
	int full = 0;

	if (w->offset > w->left) {
		uint64_t over = w->offset - w->left;

		data.n -= over < data.n ? (size_t)over : data.n;
	}
	if (w->only[stream] && data.n)
		full = http_answer_write(r, data);
	if (w->offset < w->left)
		return full;
	box_call_done(&w->call);
	http_answer_end(r);
	return 1;
}

static void raw_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	(void)r;
	if (!w->begun)
		api_refuse_err(w->v->q->http, why);
	else if (why)
		http_request_cut(w->v->q->http); /* the client must not take a part for the whole */
	else
		http_answer_end(w->v->q->http);
}

const struct view_sink sink_raw = { .started = raw_started,
				    .output = raw_output,
				    .ended = raw_ended };
