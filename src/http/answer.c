/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: their heads, whole bodies, streams and tunnels. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/parts.h"
#include "wire/connect_envelope.h"
#include "wire/http_lines.h"
#include "wire/http_write.h"
#include "wire/sse_write.h"

enum {
	COPY_MOST = 16 * 1024, /* larger bodies are not copied behind the head */
	GZIP_LEAST = 4 * 1024, /* smaller JSON is not compressed */
	GZIP_MOST = 4 << 20,   /* larger JSON would stop the loop for too long */
	HEADER_TEXT = 1024,
	KEEP_MARGIN_S = 10, /* clients should give up an idle connection before we do */
};

/* --- headers --- */

static bool is_ours(const char *name)
{
	static const char *const names[] = { "content-length", "transfer-encoding", "connection",
					     "keep-alive", "date" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

void http_answer_header(struct http_request *r, const char *name, struct str value)
{
	struct http_exchange *x = http_exchange_of(r);
	int err = is_ours(name) ? -EINVAL : http_put_header(&x->fields, name, value);

	if (err < 0)
		x->fields_err = err;
}

void http_answer_headerf(struct http_request *r, const char *name, const char *fmt, ...)
{
	char text[HEADER_TEXT];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof text)
		http_exchange_of(r)->fields_err = -E2BIG;
	else
		http_answer_header(r, name, (struct str){ text, (size_t)n });
}

static bool has_no_body(int status)
{
	return status < 200 || status == 204 || status == 304;
}

/*
 * The answer ends the exchange before its body was read. A rest that is short is dropped; for a
 * longer or unknown one the connection closes.
 */
static void settle_input(struct http_exchange *x)
{
	struct http_body *f = &x->in.framing;
	struct http_conn *c = x->c;
	struct str in = buf_behind(&c->in, c->taken), drop;

	if (x->in_mode == HTTP_IN_DONE)
		return;
	x->in.most = UINT64_MAX;
	x->in.gzip = false;
	x->in.raw = x->piece = STR_NONE;
	x->in_mode = HTTP_IN_DONE;
	x->paused = false;
	while (http_body_next(f, &in, &drop) == HTTP_DATA)
		;
	c->taken = c->in.len - in.n;
	if (f->state == HTTP_S_DONE)
		return;
	if (f->state == HTTP_S_DATA && f->left <= LIMIT_HTTP_DRAIN && !x->owes_continue)
		x->in_mode = HTTP_IN_DROP;
	else
		x->keep = false;
}

static int put_framing(struct http_exchange *x, struct buf *b, int status, int64_t length)
{
	struct http_body_out *out = &x->out;

	if (has_no_body(status)) {
		out->framing = HTTP_OUT_NONE;
		return 0;
	}
	if (length >= 0) {
		out->framing = x->is_head ? HTTP_OUT_NONE : HTTP_OUT_LENGTH;
		out->left = x->is_head ? 0 : (uint64_t)length;
		return http_put_header_u64(b, "Content-Length", (uint64_t)length);
	}
	if (x->minor == 0) {
		out->framing = x->is_head ? HTTP_OUT_NONE : HTTP_OUT_RAW;
		x->keep = false;
		return 0;
	}
	out->framing = x->is_head ? HTTP_OUT_NONE : HTTP_OUT_CHUNKED;
	return http_put_header(b, "Transfer-Encoding", STR("chunked"));
}

static int put_connection(struct http_exchange *x, struct buf *b)
{
	unsigned idle_s = x->c->server->limits.idle_ms / 1000;
	int r = 0;

	if (x->c->server->draining || (x->c->server->retiring && x->c->is_tls))
		x->keep = false;
	if (!x->keep)
		return http_put_header(b, "Connection", STR("close"));
	if (x->minor == 0)
		r = http_put_header(b, "Connection", STR("keep-alive"));
	if (r == 0 && idle_s > KEEP_MARGIN_S)
		r = buf_printf(b, "Keep-Alive: timeout=%u\r\n", idle_s - KEEP_MARGIN_S);
	return r;
}

int http_answer_head(struct http_exchange *x, int status, const char *type, int64_t length)
{
	struct buf *b = &x->out.out;
	char date[HTTP_DATE];
	int r = http_put_status(b, status);

	http_date(date);
	x->r.status = status;
	x->out_ns = clock_mono_ns();
	if (r == 0)
		r = http_put_header(b, "Date", str_of(date));
	if (r == 0)
		r = buf_add_str(b, buf_str(&x->fields));
	if (r == 0 && type)
		r = http_put_header(b, "Content-Type", str_of(type));
	if (r == 0)
		r = put_framing(x, b, status, length);
	if (r == 0)
		r = put_connection(x, b);
	if (r == 0)
		r = http_put_end(b);
	buf_done(&x->fields);
	if (r < 0)
		http_conn_close(x->c, HTTP_END_GONE);
	return r;
}

/* --- whole answers --- */

static bool is_over(const struct http_exchange *x)
{
	return x->c->state == HTTP_CLOSED;
}

/* A header that cannot be sent must not be left out: a 500 takes the place of the answer. */
static bool fields_bad(struct http_exchange *x)
{
	if (x->fields_err == 0)
		return false;
	x->fields_err = 0;
	buf_clear(&x->fields);
	http_conn_refuse(x->c, 500, "a header of the answer is not valid");
	return true;
}

static bool compress(struct http_exchange *x, const char *type, struct str body, struct buf *ret)
{
	static const char json[] = "application/json";

	if (!x->wants_gzip || !type || strncmp(type, json, sizeof json - 1) != 0 ||
	    body.n <= GZIP_LEAST || body.n > GZIP_MOST || gzip_put(ret, body) < 0)
		return false;
	return http_put_header(&x->fields, "Content-Encoding", STR("gzip")) == 0 &&
	       http_put_header(&x->fields, "Vary", STR("Accept-Encoding")) == 0;
}

/* Queue the answer; takes `own` if the body lies in it and is large. */
static void answer_whole(struct http_exchange *x, int status, const char *type, struct str body,
			 struct buf *own)
{
	auto_done(buf_done) struct buf packed = BUF_INIT(LIMIT_HTTP_ANSWER);

	if (is_over(x) || x->out_mode != HTTP_OUT_OPEN || fields_bad(x))
		return;
	if (body.n > LIMIT_HTTP_ANSWER) {
		http_conn_refuse(x->c, 500, "the answer is too large");
		return;
	}
	if (compress(x, type, body, &packed)) {
		body = buf_str(&packed);
		own = &packed;
	}
	settle_input(x);
	if (http_answer_head(x, status, type, (int64_t)body.n) < 0)
		return;
	x->out_mode = HTTP_OUT_ENDED;
	if (x->out.framing == HTTP_OUT_LENGTH) {
		x->r.bytes_out = body.n;
		if (own && body.n > COPY_MOST) {
			body_out_take(&x->out, own);
			x->out.left = 0;
		} else if (body_out_add(&x->out, body) < 0) {
			http_conn_close(x->c, HTTP_END_GONE);
		}
	}
	http_conn_touch(x->c);
}

void http_answer(struct http_request *r, int status, const char *type, struct str body)
{
	answer_whole(http_exchange_of(r), status, type, body, NULL);
}

void http_answer_buf(struct http_request *r, int status, const char *type, struct buf *b)
{
	answer_whole(http_exchange_of(r), status, type, buf_str(b), b);
	buf_done(b);
}

/* --- streams --- */

static void open_window(struct http_exchange *x)
{
	struct http_server *s = x->c->server;

	x->window = ++s->streams <= LIMIT_HTTP_ROOMY ? LIMIT_HTTP_WINDOW : LIMIT_HTTP_WINDOW_LEAST;
}

int http_answer_begin(struct http_request *r, int status, const char *type, int64_t length)
{
	struct http_exchange *x = http_exchange_of(r);
	int err;

	if (is_over(x))
		return -EPIPE;
	if (x->out_mode != HTTP_OUT_OPEN || fields_bad(x))
		return -EALREADY;
	if (x->in_mode == HTTP_IN_UNASKED && !body_in_is_complete(&x->in))
		x->keep = false; /* perhaps nobody ever reads the body */
	err = http_answer_head(x, status, type, length);
	if (err < 0)
		return -EPIPE;
	x->out_mode = HTTP_OUT_STREAM;
	open_window(x);
	http_conn_touch(x->c);
	return 0;
}

bool http_answer_is_full(const struct http_request *r)
{
	const struct http_exchange *x = http_exchange_of(r);

	return body_out_unsent(&x->out) >= x->window;
}

size_t http_answer_unsent(const struct http_request *r)
{
	return body_out_unsent(&http_exchange_of(r)->out);
}

int http_answer_write(struct http_request *r, struct str data)
{
	struct http_exchange *x = http_exchange_of(r);
	int err;

	if (is_over(x) || x->out_mode != HTTP_OUT_STREAM)
		return -EPIPE;
	if (data.n > LIMIT_HTTP_WRITE || body_out_unsent(&x->out) > x->window + LIMIT_HTTP_WRITE)
		return -E2BIG;
	err = body_out_add(&x->out, data);
	if (err < 0)
		return err;
	r->bytes_out += data.n;
	http_conn_touch(x->c);
	x->full_out = x->full_out || http_answer_is_full(r);
	return x->full_out;
}

void http_answer_end(struct http_request *r)
{
	struct http_exchange *x = http_exchange_of(r);

	if (is_over(x) || x->out_mode != HTTP_OUT_STREAM)
		return;
	if (body_out_end(&x->out) < 0) {
		http_conn_close(x->c, HTTP_END_CUT);
		return;
	}
	settle_input(x);
	x->out_mode = HTTP_OUT_ENDED;
	x->out_ns = clock_mono_ns();
	http_conn_touch(x->c);
}

/* Write what one of the codecs made. */
static int write_made(struct http_request *r, struct buf *made, int err)
{
	return err < 0 ? err : http_answer_write(r, buf_str(made));
}

int http_answer_event(struct http_request *r, struct str event, struct str id, struct str data)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_WRITE);
	int err = sse_put(&b, event, id, data);

	return write_made(r, &b, err);
}

int http_answer_envelope(struct http_request *r, unsigned flags, struct str payload)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_WRITE);
	int err = envelope_put(&b, flags, payload);

	return write_made(r, &b, err);
}

int http_answer_tunnel(struct http_request *r, struct str protocol)
{
	struct http_exchange *x = http_exchange_of(r);
	struct buf *b = &x->out.out;
	int err;

	if (is_over(x))
		return -EPIPE;
	if (x->out_mode != HTTP_OUT_OPEN || fields_bad(x))
		return -EALREADY;
	if (!http_request_head(r)->upgrade || x->r.has_body)
		return -EINVAL;
	err = http_put_status(b, 101);
	if (err == 0)
		err = http_put_header(b, "Upgrade", protocol);
	if (err == 0)
		err = http_put_header(b, "Connection", STR("Upgrade"));
	if (err == 0)
		err = buf_add_str(b, buf_str(&x->fields));
	if (err == 0)
		err = http_put_end(b);
	if (err < 0) {
		http_conn_close(x->c, HTTP_END_GONE);
		return -EPIPE;
	}
	r->status = 101;
	x->tunnel = true;
	x->out.framing = HTTP_OUT_RAW;
	x->out_mode = HTTP_OUT_STREAM;
	x->in_mode = HTTP_IN_STREAM;
	open_window(x);
	http_conn_touch(x->c);
	return 0;
}
