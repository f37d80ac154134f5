/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that workers answer. */
#include <errno.h>
#include <stdlib.h>

#include "api/answer.h"
#include "api/e2b/box.h"
#include "api/error.h"
#include "api/front.h"
#include "api/v1/v1.h"
#include "base/clock.h"
#include "wire/json_write.h"
#include "wire/url.h"

static void close_fds(const struct job_answer *a)
{
	for (int i = 0; a && i < a->nfds; i++)
		(void)close(a->fds[i]);
}

static void on_answer(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct api_request *q = ctx;
	struct api_answer answer;

	q->job = NULL;
	if (why) {
		close_fds(a);
		api_refuse_err(q->http, why);
		return;
	}
	if (api_answer_read(a->out, &answer) < 0) {
		close_fds(a);
		api_refuse(q->http, 500, "a worker sent a malformed answer");
		return;
	}
	if (route_doc(q->route) && a->nfds == 1) {
		v1_send_file(q, answer.status, answer.type, a->fds[0]);
		return;
	}
	close_fds(a);
	if (answer.next.n)
		http_answer_header(q->http, "x-next-token", answer.next);
	if (answer.replayed)
		http_answer_header(q->http, "Idempotent-Replayed", STR("true"));
	http_answer(q->http, answer.status, answer.body.n ? "application/json" : NULL, answer.body);
}

/* The query's parameters, each once. */
static int put_query(struct json *j, struct str query)
{
	struct str name, value;

	json_put_obj(j, "query");
	while (url_query_next(&query, &name, &value)) {
		auto_done(buf_done) struct buf k = BUF_INIT(256), v = BUF_INIT(16384);

		if (url_decode(&k, name, URL_PLUS | URL_SLASH) < 0 ||
		    url_decode(&v, value, URL_PLUS | URL_SLASH) < 0 || !k.len)
			return -EBADMSG;
		json_put_str(j, k.data, buf_str(&v));
	}
	json_end(j);
	return 0;
}

/* What a worker gets. The body was read and written again: no byte of it is the client's own. */
static int put_request(struct buf *out, const struct api_request *q, struct str body,
		       struct str more)
{
	const struct str *key = http_request_header(q->http, "idempotency-key");
	struct json j;

	json_init(&j, out);
	json_obj(&j);
	if (!q->who.admin)
		json_put_c(&j, "owner", q->who.owner);
	if (q->who.key)
		json_put_u64(&j, "scope", q->who.key->said.scope);
	json_put_c(&j, "id", q->id);
	json_put_c(&j, "sub", q->sub);
	if (q->route->flags & ROUTE_ONCE && key)
		json_put_str(&j, "key", *key);
	if ((route_doc(q->route) ? v1_put_query(&j, q->http->query, route_doc(q->route)->query)
				 : put_query(&j, q->http->query)) < 0)
		return -EBADMSG;
	if (body.n)
		json_put_raw(&j, "body", body);
	if (more.n)
		json_put_raw(&j, "more", more);
	json_end(&j);
	return json_done(&j);
}

static void start_job(struct api_request *q, struct job_spec *spec, struct str body,
		      struct str more)
{
	auto_done(buf_done) struct buf in = BUF_INIT(LIMIT_JOB_BODY);
	struct err e = { 0 };

	if (put_request(&in, q, body, more) < 0) {
		api_refuse(q->http, 400, "the request is malformed or too large");
		return;
	}
	spec->in = buf_str(&in);
	if (q->who.key)
		spec->asker = q->who.key->said.id;
	if (state_id_ok(q->id))
		spec->key = q->id;
	q->job = job_start(&q->front->queue, spec, &e);
	if (!q->job)
		api_refuse_err(q->http, &e);
}

void api_ask_worker(struct api_request *q, struct str body)
{
	struct job_spec spec = { .kind = q->route->job, .done = on_answer, .ctx = q };

	start_job(q, &spec, body, STR_NONE);
}

void api_start_job(struct api_request *q, const char *kind, struct str more,
		   void (*done)(void *ctx, const struct job_answer *a, const struct err *why),
		   void *ctx)
{
	struct job_spec spec = { .kind = kind, .done = done, .ctx = ctx };

	start_job(q, &spec, STR_NONE, more);
}

/* A key that expires ends its streams, as one that is revoked. */
static void watch_expiry(struct front *f);

static void on_expiry(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, expiry);

	boxes_check_keys(f);
	watch_expiry(f);
}

static void watch_expiry(struct front *f)
{
	uint64_t now = clock_real_ns(), at = auth_next_expiry(&f->auth, now);

	loop_timer_stop(&f->loop, &f->expiry);
	if (at)
		loop_timer_set(&f->loop, &f->expiry, at - now, on_expiry);
}

static void on_keys_retry(struct loop_timer *t)
{
	front_ask_keys(container_of(t, struct front, keys_retry));
}

static void on_keys(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct front *f = ctx;
	bool known;

	(void)why;
	close_fds(a);
	f->asking_keys = false;
	/* Unknown keys are refused until they can be read. */
	known = a && auth_replace(&f->auth, a->out) == 0;
	front_accept(f);
	if (known) {
		boxes_check_keys(f);
		watch_expiry(f);
		if (!f->keys_changed)
			return;
	}
	/* Now if they changed meanwhile, and later if they could not be read. */
	loop_timer_set(&f->loop, &f->keys_retry, f->keys_changed ? 0 : NS_PER_S, on_keys_retry);
	f->keys_changed = false;
}

void front_ask_keys(struct front *f)
{
	const struct job_spec spec = { .kind = "keys", .done = on_keys, .ctx = f };
	struct err ignored = { 0 };

	f->keys_changed = f->asking_keys;
	if (f->asking_keys)
		return;
	f->asking_keys = job_start(&f->queue, &spec, &ignored) != NULL;
	if (!f->asking_keys)
		loop_timer_set(&f->loop, &f->keys_retry, NS_PER_S, on_keys_retry);
}
