/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET …/calls/{n}/attach: a WebSocket with the input and output of a call.
 *
 *   binary   one byte (0 stdin, 1 stdout, 2 stderr), then the bytes
 *   text     from the client {"resize":{"rows":R,"cols":C}}, {"signal":"INT"}, {"eof":true}
 *            from the server {"started":{…}}, {"denied":{…}}, {"exit":{…}}, {"error":{…}}
 *
 * Closing it does not end the call.
 */
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "api/v1/view.h"
#include "http/ws.h"
#include "ops/json.h"
#include "wire/json_load.h"

enum {
	PIECE = 32 * 1024,
	TEXT_MOST = 128 * 1024,
	TO_STDIN = 0,
	NORMAL = 1000,
	AGAIN = 1001,
	BAD_DATA = 1007,
	BAD_RULE = 1008
};

static int send_text(struct view *w, const struct json *j, const struct buf *b)
{
	return json_done(j) < 0 || !w->ws ? 0 : http_ws_send(w->ws, true, buf_str(b));
}

/* ---- from the client ---- */

static bool obey(struct view *w, const json_t *order)
{
	const json_t *size = json_object_get(order, "resize");
	const char *sig = json_string_value(json_object_get(order, "signal"));
	json_int_t rows = json_integer_value(json_object_get(size, "rows"));
	json_int_t cols = json_integer_value(json_object_get(size, "cols"));

	if (size && rows > 0 && rows < 65536 && cols > 0 && cols < 65536)
		link_call_resize(&w->call.call, (unsigned)rows, (unsigned)cols);
	else if (view_signal(sig))
		link_call_signal(&w->call.call, view_signal(sig));
	else if (json_is_true(json_object_get(order, "eof")))
		w->eof = true;
	else
		return false;
	view_flush(w);
	return true;
}

static void on_message(struct http_ws *ws, bool is_text, struct str data)
{
	struct view *w = ws->user;

	if (!w->call.box)
		return;
	if (is_text) {
		auto_done(json_free) json_t *order = json_load_object(data);

		if (!order || !obey(w, order))
			http_ws_close(ws, BAD_DATA, STR("not an order"));
		return;
	}
	if (data.n == 0 || data.p[0] != TO_STDIN || w->eof ||
	    buf_add(&w->in, data.p + 1, data.n - 1) < 0) {
		http_ws_close(ws, BAD_RULE, STR("not input"));
		return;
	}
	view_flush(w);
	if (w->in.len)
		http_ws_hold(ws, true);
}

static void on_ws_room(struct http_ws *ws)
{
	view_room(ws->user);
}

static void on_ws_ended(struct http_ws *ws, int code)
{
	struct view *w = ws->user;
	struct http_request *r = ws->request;

	(void)code;
	w->ws = NULL;
	/* v1_ended() finds the request as it was before the tunnel. */
	r->user = w->v->q;
	v1_ended(r, HTTP_END_DONE);
}

static const struct http_ws_handler ws_handler = { .message = on_message,
						   .room = on_ws_room,
						   .ended = on_ws_ended };

/* ---- from the call ---- */

/* Chosen only if the client offers it: a browser refuses any other choice. */
static struct str ws_protocol(const struct v1 *v)
{
	const struct str *offered = http_request_header(v->q->http, "sec-websocket-protocol");

	return offered && memmem(offered->p, offered->n, "cay.v1", 6) ? STR("cay.v1") : STR_NONE;
}

static void ws_started(struct view *w, const struct call_started *s)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MOST);
	struct json j;

	w->ws = http_ws_accept(w->v->q->http, ws_protocol(w->v), &ws_handler, w);
	if (!w->ws) {
		box_call_done(&w->call);
		return;
	}
	json_init(&j, &b);
	json_obj(&j);
	json_put_obj(&j, "started");
	json_put_u64(&j, "call", s->call);
	json_put_i64(&j, "pid", s->pid);
	json_put_u64(&j, "offset", s->offset);
	json_put_u64(&j, "dropped_bytes", s->dropped);
	json_end(&j);
	json_end(&j);
	(void)send_text(w, &j, &b);
}

static int ws_output(struct view *w, enum call_stream stream, struct str data)
{
	int full = 0;

	while (data.n && w->ws) {
		char message[PIECE + 1];
		size_t n = data.n < PIECE ? data.n : PIECE;

		message[0] = (char)(stream == CALL_STDOUT ? 1 : 2);
		memcpy(message + 1, data.p, n);
		full |= http_ws_send(w->ws, false, (struct str){ message, n + 1 });
		data.p += n;
		data.n -= n;
	}
	return full;
}

static void ws_denied(struct view *w, const struct call_denied *d)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MOST);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_key(&j, "denied");
	json_denied(&j, d);
	json_end(&j);
	(void)send_text(w, &j, &b);
}

static void ws_room(struct view *w)
{
	if (w->ws && w->in.len == 0)
		http_ws_hold(w->ws, false);
}

static void ws_ended(struct view *w, const struct call_result *r, const struct err *why)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MOST);
	struct json j;

	if (!w->ws) {
		if (!w->v->q->http->status)
			api_refuse_err(w->v->q->http, why);
		return;
	}
	if (why) {
		if (v1_error_put(&b, v1_error_status(why), why) == 0)
			(void)http_ws_send(w->ws, true, buf_str(&b));
		http_ws_close(w->ws, AGAIN, STR("attach again"));
		return;
	}
	json_init(&j, &b);
	json_obj(&j);
	json_put_obj(&j, "exit");
	view_put_result(&j, r);
	json_end(&j);
	json_end(&j);
	(void)send_text(w, &j, &b);
	http_ws_close(w->ws, NORMAL, STR("the call has ended"));
}

static void begin(struct v1 *v, struct box *b)
{
	static const struct view_sink sink = { .started = ws_started,
					       .output = ws_output,
					       .denied = ws_denied,
					       .room = ws_room,
					       .ended = ws_ended };
	struct view *w = v1_is_websocket(v) ? view_new(v, &sink) : NULL;

	if (w)
		view_join(w, b, v1_param_number(v->q, "from", 0), v1_param_is(v->q, "stdin", true),
			  0);
}

void v1_call_attach(struct api_request *q)
{
	v1_with_box(q, begin);
}
