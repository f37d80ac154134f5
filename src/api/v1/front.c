/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/answer.h"
#include "api/error.h"
#include "api/v1/v1.h"
#include "wire/json_load.h"
#include "wire/url.h"

enum { BODY_MOST = 4 << 20, VALUE_MOST = 16 * 1024, OPENAPI_MOST = 1 << 20 };

/* ---- queries ---- */

bool v1_admit(struct api_request *q)
{
	struct err e = { 0 };

	if (q->route->flags & ROUTE_ADMIN && !q->who.admin) {
		(void)err_set(&e, ERR_NOT_ALLOWED, "only the host's user may do this");
		(void)err_hint(&e, "use the unix socket of the server");
	} else if (v1_check_query(q->http->query, route_doc(q->route)->query, &e) == 0) {
		return true;
	}
	api_refuse_err(q->http, &e);
	return false;
}

static void put_typed(struct json *j, const struct v1_field *f, struct str text)
{
	if (f->type == V1_INT)
		json_i64(j, strtoll(text.p, NULL, 10));
	else if (f->type == V1_BOOL)
		json_bool(j, str_is(text, "true"));
	else
		json_str(j, text.n ? text : STR(""));
}

/* Each value of one parameter. Its row and the values were checked. */
static int put_values(struct json *j, struct str query, const struct v1_field *f)
{
	struct str name, value;
	bool list = f->type == V1_ARRAY, keyed = false;

	if (list)
		json_put_arr(j, f->name);
	while (url_query_next(&query, &name, &value)) {
		auto_done(buf_done) struct buf k = BUF_INIT(256), v = BUF_INIT(VALUE_MOST);

		if (url_decode(&k, name, URL_PLUS | URL_SLASH) < 0 ||
		    url_decode(&v, value, URL_PLUS | URL_SLASH) < 0)
			return -EBADMSG;
		if (!str_is(buf_str(&k), f->name) || keyed)
			continue;
		if (!list) {
			json_key(j, f->name);
			keyed = true;
		}
		put_typed(j, list ? f->of : f, buf_str(&v));
	}
	if (list)
		json_end(j);
	return 0;
}

int v1_put_query(struct json *j, struct str query, const struct v1_field *fields)
{
	int r = 0;

	json_put_obj(j, "query");
	for (const struct v1_field *f = fields; f && f->name && r == 0; f++)
		r = put_values(j, query, f);
	json_end(j);
	return r;
}

bool v1_param(const struct api_request *q, const char *name, char *out, size_t size)
{
	auto_done(buf_done) struct buf b = BUF_INIT(VALUE_MOST);

	out[0] = '\0';
	return url_query_get(q->http->query, name, &b) == 1 && str_copy(out, size, buf_str(&b));
}

uint64_t v1_param_number(const struct api_request *q, const char *name, uint64_t otherwise)
{
	char text[24];

	return v1_param(q, name, text, sizeof text) ? strtoull(text, NULL, 10) : otherwise;
}

bool v1_param_is(const struct api_request *q, const char *name, bool otherwise)
{
	char text[8];

	return v1_param(q, name, text, sizeof text) ? strcmp(text, "true") == 0 : otherwise;
}

/* ---- requests of their own ---- */

void v1_ended(struct http_request *r, enum http_end why)
{
	struct v1 *v = v1_of(r);
	struct api_request *q = v->q;

	(void)why;
	api_count(q, q->route->method, q->route->path);
	if (q->job)
		job_drop(q->job);
	box_want_drop(&v->want);
	if (v->own_done)
		v->own_done(v);
	json_decref(v->body);
	free(v);
	free(q);
}

struct v1 *v1_new(struct api_request *q)
{
	static const struct http_handler handler = { .ended = v1_ended };
	struct v1 *v = calloc(1, sizeof *v);

	if (!v) {
		api_refuse(q->http, 503, "out of memory");
		return NULL;
	}
	v->q = q;
	q->user = v;
	q->http->handler = &handler;
	return v;
}

void v1_answer(struct v1 *v, int status, struct json *j, struct buf *b)
{
	if (json_done(j) < 0)
		api_refuse(v->q->http, 500, "the answer is too long");
	else
		http_answer_buf(v->q->http, status, "application/json", b);
}

bool v1_is_websocket(struct v1 *v)
{
	const struct str *upgrade = http_request_header(v->q->http, "upgrade");

	if (upgrade && upgrade->n == 9 && strncasecmp(upgrade->p, "websocket", 9) == 0)
		return true;
	http_answer_header(v->q->http, "Upgrade", STR("websocket"));
	api_refuse(v->q->http, 426, "this is a WebSocket");
	return false;
}

void v1_gone(struct v1 *v, const struct err *why)
{
	struct err e = { 0 };

	if (why && strcmp(why->code, "sandbox.not_running") == 0) {
		(void)err_set(&e, ERR_CONFLICT, "sandbox '%s' does not run; resume it", v->q->id);
		(void)err_code(&e, "sandbox.not_running", NULL);
	} else if (why && why->kind != ERR_UNAVAILABLE) {
		e = *why;
	} else {
		(void)err_set(&e, ERR_NOT_FOUND, "sandbox '%s' not found", v->q->id);
		(void)err_code(&e, "sandbox.unknown", NULL);
	}
	api_refuse_err(v->q->http, &e);
}

static void on_box(struct box_want *w, struct box *b, const struct err *why)
{
	struct v1 *v = container_of(w, struct v1, want);

	/* Whose sandbox it is was checked when it was found; an id may skip that. */
	if (b && !v->q->who.admin && strcmp(b->owner, v->q->who.owner) != 0) {
		b = NULL;
		why = NULL;
	}
	if (b)
		v->begin(v, b);
	else
		v1_gone(v, why);
}

static void want_box(struct v1 *v)
{
	v->want.done = on_box;
	box_want(v->q->front, v->q->id, &v->want);
}

static void on_found(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct v1 *v = ctx;
	struct api_answer answer;

	v->q->job = NULL;
	if (why)
		api_refuse_err(v->q->http, why);
	else if (api_answer_read(a->out, &answer) < 0 ||
		 !str_copy(v->q->id, sizeof v->q->id, answer.body))
		api_refuse(v->q->http, 500, "a worker sent a malformed answer");
	else
		want_box(v);
}

/* The id in the path may be a name: a worker knows. */
static void find_box(struct v1 *v)
{
	if (state_id_ok(v->q->id) && box_find(v->q->front, v->q->id))
		want_box(v);
	else
		api_start_job(v->q, "v1.find", STR_NONE, on_found, v);
}

static void on_body(struct http_request *r, struct str text)
{
	struct v1 *v = v1_of(r);
	struct err e = { 0 };

	v->body = text.n ? json_load_object(text) : json_object();
	if (!v->body)
		api_refuse(r, 400, "the body is not a JSON object");
	else if (v1_check(v->body, route_doc(v->q->route)->body, &e) < 0)
		api_refuse_err(r, &e);
	else
		find_box(v);
}

void v1_with_box(struct api_request *q, void (*begin)(struct v1 *v, struct box *b))
{
	static const struct http_handler with_body = { .body = on_body, .ended = v1_ended };
	struct v1 *v = v1_new(q);

	if (!v)
		return;
	v->begin = begin;
	if (!(q->route->flags & ROUTE_BODY)) {
		find_box(v);
		return;
	}
	q->http->handler = &with_body;
	(void)http_request_buffer(q->http, BODY_MOST);
}

void v1_openapi(struct api_request *q)
{
	auto_done(buf_done) struct buf b = BUF_INIT(OPENAPI_MOST);

	if (v1_openapi_put(&b) < 0)
		api_refuse(q->http, 500, "the document is too long");
	else
		http_answer_buf(q->http, 200, "application/json", &b);
}
