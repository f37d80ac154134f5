/* SPDX-License-Identifier: Apache-2.0 */
/* What the app asks about a request, and how it asks for the body. */
#include <errno.h>

#include "base/clock.h"
#include "http/parts.h"
#include "wire/http_lines.h"
#include "wire/http_write.h"

const struct http_head *http_request_head(struct http_request *r)
{
	struct http_server *s = r->server;

	if (s->head_of != r) {
		(void)http_request_parse(buf_str(&http_exchange_of(r)->text), &s->head);
		s->head_of = r;
	}
	return &s->head;
}

const struct str *http_request_header(struct http_request *r, const char *name)
{
	return http_header(http_request_head(r), name);
}

bool http_request_is(const struct http_request *r, const char *method)
{
	return str_is(r->method, method);
}

const struct http_peer *http_request_peer(const struct http_request *r)
{
	return &http_exchange_of(r)->c->peer;
}

bool http_request_is_tls(const struct http_request *r)
{
	return http_exchange_of(r)->c->is_tls;
}

void http_request_trust(struct http_request *r)
{
	http_server_forget(http_exchange_of(r)->c);
}

void http_request_own(struct http_request *r, struct http_owner *o)
{
	struct http_exchange *x = http_exchange_of(r);

	if (x->c->owner) {
		x->c->owner->conns--;
		x->c->owner->bodies -= x->counted;
	}
	o->conns++;
	o->bodies += x->counted;
	x->c->owner = o;
}

void http_request_last(struct http_request *r)
{
	http_exchange_of(r)->keep = false;
}

/* 0, 1 for gzip, or -EOPNOTSUPP. */
static int coding_of(struct http_request *r)
{
	const struct http_head *h = http_request_head(r);
	size_t found = 0;
	int coding = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (!http_name_is(h->headers[i].name, "content-encoding"))
			continue;
		found++;
		if (http_name_is(h->headers[i].value, "gzip") ||
		    http_name_is(h->headers[i].value, "x-gzip"))
			coding = 1;
		else if (!http_name_is(h->headers[i].value, "identity"))
			coding = -EOPNOTSUPP;
	}
	return found > 1 ? -EOPNOTSUPP : coding;
}

/* A client that sent bytes of its body already does not wait for us. */
static int say_continue(struct http_exchange *x)
{
	struct buf *b = &x->out.out;
	int r;

	if (!x->owes_continue || x->c->in.len > x->c->taken)
		return 0;
	x->owes_continue = false;
	r = http_put_status(b, 100);
	return r < 0 ? r : http_put_end(b);
}

static int ask(struct http_request *r, enum http_in_mode mode, uint64_t most, bool raw)
{
	struct http_exchange *x = http_exchange_of(r);
	int coding = raw ? 0 : coding_of(r), err = 0;

	if (x->c->state == HTTP_CLOSED)
		return -EPIPE;
	if (x->in_mode != HTTP_IN_UNASKED)
		return -EALREADY;
	if (coding < 0) {
		http_conn_refuse(x->c, 415, "the body's Content-Encoding is not gzip");
		return 0;
	}
	if (r->length != UINT64_MAX && !coding && r->length > most) {
		http_conn_refuse(x->c, 413, "the body is too large");
		return 0;
	}
	if (coding && r->has_body && r->length != 0)
		err = body_in_decode(&x->in);
	if (err == 0)
		err = say_continue(x);
	if (err < 0)
		return err;
	x->in_mode = mode;
	x->in.most = most;
	x->asked_ns = x->in_ns = clock_mono_ns();
	http_conn_touch(x->c);
	return 0;
}

int http_request_buffer(struct http_request *r, size_t most)
{
	int err = ask(r, HTTP_IN_BUFFER, most, false);

	if (err == 0)
		http_exchange_of(r)->body.max = most;
	return err;
}

int http_request_stream(struct http_request *r, uint64_t most, bool raw)
{
	return ask(r, HTTP_IN_STREAM, most ? most : UINT64_MAX, raw);
}

void http_request_resume(struct http_request *r)
{
	struct http_exchange *x = http_exchange_of(r);

	x->paused = false;
	x->in_ns = clock_mono_ns();
	http_conn_touch(x->c);
}

void http_request_cut(struct http_request *r)
{
	http_conn_close(http_exchange_of(r)->c, HTTP_END_CUT);
}

static void refusal_text(struct http_conn *c, int status, const char *why, struct buf *out,
			 const char **type)
{
	const struct http_app *app = c->server->app;
	struct http_request *r = c->x->r.method.n ? &c->x->r : NULL;

	if (app->refuse)
		*type = app->refuse(c->server, r, status, why, out);
	else if (buf_printf(out, "%s\n", why) < 0)
		buf_clear(out);
}

void http_conn_refuse(struct http_conn *c, int status, const char *why)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_HTTP_HEAD);
	const char *type = "text/plain; charset=utf-8";
	struct http_exchange *x = c->x ? c->x : http_exchange_new(c);

	c->server->counters.refused[HTTP_REFUSED_BAD] += status >= 400 && status < 500;
	if (!x || x->out_mode != HTTP_OUT_OPEN) {
		http_conn_close(c, HTTP_END_GONE);
		return;
	}
	x->refused = true;
	x->keep = false;
	x->in_mode = HTTP_IN_DONE;
	x->piece = STR_NONE;
	x->fields_err = 0;
	buf_clear(&x->fields);
	refusal_text(c, status, why, &text, &type);
	if (http_answer_head(x, status, type, (int64_t)text.len) < 0)
		return;
	if (body_out_add(&x->out, buf_str(&text)) < 0) {
		http_conn_close(c, HTTP_END_GONE);
		return;
	}
	x->out_mode = HTTP_OUT_ENDED;
	http_conn_touch(c);
}
