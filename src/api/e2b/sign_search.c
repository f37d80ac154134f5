/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/sign_search.h"

#include <errno.h>
#include <stdlib.h>

#include "api/e2b/box.h"
#include "api/e2b/common.h"
#include "api/e2b/sandboxes.h"
#include "api/e2b/sign.h"
#include "api/error.h"
#include "api/server_key.h"
#include "wire/url.h"

/* Anybody can make one worker look at all sandboxes; not all of the workers. */
enum { SEARCHES_MOST = 2 };

/* ---- in the front ---- */

struct searching {
	struct api_request *q;
	void (*found)(struct api_request *q);
};

static void searching_done(struct api_request *q)
{
	free(TAKE_PTR(q->user));
	q->front->searches--;
}

static void on_found(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct searching *s = ctx;
	struct api_request *q = s->q;
	void (*found)(struct api_request *) = s->found;

	q->job = NULL;
	if (!why && str_copy(q->id, sizeof q->id, a->out) && state_id_ok(q->id)) {
		searching_done(q);
		found(q);
	} else if (why && why->kind != ERR_NOT_FOUND) {
		api_refuse_err(q->http, why);
	} else {
		api_refuse(q->http, 401, "invalid signature");
	}
}

static void on_ended(struct http_request *r, enum http_end why)
{
	struct api_request *q = r->user;

	(void)why;
	api_count(q, "", "envd");
	if (q->job)
		job_drop(q->job);
	if (q->user)
		searching_done(q);
	free(q);
}

/* A sandbox that is in use; the others are a worker's matter. */
static bool find_open(struct api_request *q)
{
	char token[TOKEN_SIZE];

	for (const struct box *b = q->front->boxes; b; b = b->next) {
		server_token(q->front->secret, "envd", b->id, token);
		if (sign_check(q->http, token) >= SIGN_EXPIRED)
			return str_copy(q->id, sizeof q->id, str_of(b->id));
	}
	return false;
}

static void ask(struct api_request *q, void (*found)(struct api_request *q))
{
	static const struct http_handler handler = { .ended = on_ended };
	auto_done(buf_done) struct buf in = BUF_INIT(LIMIT_HTTP_HEAD + 16);
	struct searching *s = calloc(1, sizeof *s);
	struct job_spec spec = { .kind = "e2b.signed", .done = on_found, .ctx = s };
	struct err e = { 0 };

	if (!s) {
		api_refuse(q->http, 503, "out of memory");
		return;
	}
	q->http->handler = &handler;
	q->user = s;
	q->front->searches++;
	if (buf_printf(&in, "%.*s ", (int)q->http->method.n, q->http->method.p) < 0 ||
	    buf_add_str(&in, q->http->query) < 0) {
		api_refuse(q->http, 503, "out of memory");
		return;
	}
	*s = (struct searching){ .q = q, .found = found };
	spec.in = buf_str(&in);
	q->job = job_start(&q->front->queue, &spec, &e);
	if (!q->job)
		api_refuse_err(q->http, &e);
}

bool sign_search(struct api_request *q, void (*found)(struct api_request *q))
{
	auto_done(buf_done) struct buf given = BUF_INIT(256);

	if (!str_is(q->http->path, "/files") ||
	    url_query_get(q->http->query, "signature", &given) <= 0)
		return false;
	if (find_open(q))
		found(q);
	else if (q->front->searches >= SEARCHES_MOST)
		api_refuse(q->http, 503, "too many searches for signed files just now");
	else
		ask(q, found);
	return true;
}

/* ---- in a worker ---- */

struct search {
	const struct job_run *r;
	struct str method, query;
	char id[ID_SIZE];
};

static int look_at(void *ctx, const struct sandbox_row *row)
{
	struct search *s = ctx;
	char token[TOKEN_SIZE];

	server_token(s->r->ctx, "envd", row->id, token);
	if (sign_check_query(s->method, s->query, token) < SIGN_EXPIRED)
		return 0;
	(void)str_copy(s->id, sizeof s->id, str_of(row->id));
	return 1;
}

int e2b_signed(struct job_run *r, struct err *e)
{
	const char *space = r->in.n ? memchr(r->in.p, ' ', r->in.n) : NULL;
	struct search s = { .r = r };

	if (!space)
		return err_set(e, ERR_INVALID, "the request is malformed");
	s.method = (struct str){ r->in.p, (size_t)(space - r->in.p) };
	s.query = (struct str){ space + 1, r->in.n - s.method.n - 1 };
	if (cay_catalog(r->cay, e) < 0 || catalog_each(r->cay->catalog, look_at, &s, e) < 0)
		return -1;
	if (!s.id[0])
		return err_set(e, ERR_NOT_FOUND, "no sandbox made this signature");
	return buf_add_c(r->out, s.id) < 0 ? err_sys(e, ENOMEM, "answer") : 0;
}
