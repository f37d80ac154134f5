/* SPDX-License-Identifier: Apache-2.0 */
#include "api/front.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/admit.h"
#include "api/e2b/envd.h"
#include "api/error.h"
#include "api/front_handlers.h"
#include "api/front_jail.h"
#include "api/v1/v1.h"
#include "api/worker.h"
#include "base/random.h"
#include "wire/json_load.h"

enum { CONTROL = 3, BODY_MOST = 1 << 20, QUICK_MORE = 2 };

/* ---- requests ---- */

static void on_ended(struct http_request *r, enum http_end why)
{
	struct api_request *q = r->user;

	(void)why;
	if (q->route)
		api_count(q, q->route->method, q->route->path);
	else
		api_count(q, "", "none");
	if (q->job)
		job_drop(q->job);
	admit_done(q);
	free(q);
}

/* The body of a request that a worker answers: JSON, or nothing. */
static void on_body(struct http_request *r, struct str body)
{
	struct api_request *q = r->user;
	auto_done(json_free) json_t *v = body.n ? json_load_object(body) : NULL;
	auto_free char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
	struct err e = { 0 };

	if (body.n && !text)
		api_refuse(r, 400, "the body is not a JSON object");
	else if (route_doc(q->route) && v1_check(v, route_doc(q->route)->body, &e) < 0)
		api_refuse_err(r, &e);
	else if (admit_creations(q, v))
		api_ask_worker(q, str_of(text));
}

static const struct http_handler job_handler = { .body = on_body, .ended = on_ended };

static const struct route *find_route(struct api_request *q, bool *ret_other)
{
	const struct http_request *r = q->http;
	struct route_params p;
	const struct route *row =
		api_is_native(r) ? v1_route_find(r->method, r->path, &p, ret_other)
				 : route_find(routes, nroutes, r->method, r->path, &p, ret_other);

	if (row) {
		(void)str_copy(q->id, sizeof q->id, str_of(p.id));
		(void)str_copy(q->sub, sizeof q->sub, str_of(p.sub));
	}
	return row;
}

/* Who asks, and whether this one may. False: answered. */
static bool admit(struct api_request *q, bool other)
{
	struct http_request *r = q->http;
	int refused;

	if (q->route && q->route->flags & ROUTE_OPEN)
		return admit_host(q) && (!route_doc(q->route) || v1_admit(q));
	refused = auth_check(&q->front->auth, r, !http_request_peer(r)->local, &q->who);
	if (refused == 401)
		admit_refuse(q, "the API key is missing or unknown");
	else if (refused)
		api_refuse(r, refused, "the server is starting");
	if (refused)
		return false;
	if (!q->route) {
		api_refuse(r, other ? 405 : 404, "%s", other ? "method not allowed" : "not found");
		return false;
	}
	http_request_trust(r);
	return admit_origin(q) && admit_key(q) && (!route_doc(q->route) || v1_admit(q));
}

static void begin_routed(struct api_request *q)
{
	struct http_request *r = q->http;
	bool other;

	q->route = find_route(q, &other);
	if (!admit(q, other))
		return;
	if (q->route->handle)
		q->route->handle(q);
	else if (q->route->flags & ROUTE_BODY)
		(void)http_request_buffer(r, BODY_MOST);
	else
		api_ask_worker(q, STR_NONE);
}

static void on_request(struct http_request *r)
{
	struct front *f = r->server->user;
	struct api_request *q = calloc(1, sizeof *q);

	if (!q) {
		api_refuse(r, 503, "out of memory");
		return;
	}
	*q = (struct api_request){ .front = f, .http = r };
	(void)snprintf(q->request, sizeof q->request, "%08x%08x", f->request_prefix,
		       ++f->request_number);
	http_answer_header(r, "Cay-Request-Id", str_of(q->request));
	r->user = q;
	r->handler = &job_handler;
	if (!envd_begin(q))
		begin_routed(q);
}

/* A head that could not be read may be for either API. */
static int put_both(struct buf *out, int status, const struct err *e)
{
	auto_done(buf_done) struct buf native = BUF_INIT(8192);
	int k = v1_error_put(&native, status, e);

	if (k == 0)
		k = api_error_put(out, status, e->msg, NULL);
	if (k < 0)
		return k;
	buf_cut(out, out->len - 1); /* its brace */
	k = buf_add_c(out, ",");
	return k < 0 ? k : buf_add(out, native.data + 1, native.len - 1);
}

static const char *on_refuse(struct http_server *s, struct http_request *r, int status,
			     const char *why, struct buf *out)
{
	struct err e = { 0 };

	(void)s;
	(void)str_copy(e.msg, sizeof e.msg, str_of(why));
	if ((api_is_native(r) ? v1_error_put(out, status, &e)
	     : r	      ? api_error_put(out, status, why, NULL)
			      : put_both(out, status, &e)) < 0)
		buf_clear(out);
	return "application/json";
}

static const struct http_app app = { .start = on_request, .refuse = on_refuse };

void front_health(struct api_request *q)
{
	http_answer(q->http, 200, "application/json", STR("{\"status\":\"ok\"}"));
}

void front_is_ready(struct api_request *q)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	const struct front *f = q->front;

	if (!f->auth.known)
		api_refuse(q->http, 503, "no worker has answered yet");
	else if (f->http.draining)
		api_refuse(q->http, 503, "the server is stopping");
	else if (buf_printf(&b, "{\"status\":\"ready\",\"generation\":%" PRIu64 "}",
			    f->generation) < 0)
		api_refuse(q->http, 503, "out of memory");
	else
		http_answer(q->http, 200, "application/json", buf_str(&b));
}

void front_metrics(struct api_request *q)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	int r = metrics_put(&q->front->metrics, &b);

	if (r == 0)
		r = buf_printf(&b,
			       "# HELP cay_connections Clients that are connected now.\n"
			       "# TYPE cay_connections gauge\ncay_connections %u\n",
			       q->front->http.counters.conns);
	if (r < 0)
		api_refuse(q->http, 503, "out of memory");
	else
		http_answer(q->http, 200, "text/plain; version=0.0.4", buf_str(&b));
}

int front_run(struct err *e)
{
	static struct front f; /* one per process */
	const struct job_host host = front_control_host(&f);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r = loop_init(&f.loop);

	(void)signal(SIGPIPE, SIG_IGN);
	job_queue_init(&f.queue, &f.loop, &api_jobs, &host,
		       cpus > 0 && cpus < JOB_QUICK_MOST ? (int)cpus + QUICK_MORE : JOB_QUICK_MOST,
		       JOB_LONG_MOST);
	if (r == 0)
		r = front_control_init(&f, CONTROL);
	if (r == 0)
		r = http_server_init(&f.http, &f.loop, &app, NULL);
	if (r == 0)
		r = random_bytes(&f.request_prefix, sizeof f.request_prefix);
	if (r == 0)
		r = strangers_init(&f.strangers);
	if (r == 0)
		r = front_jail();
	if (r < 0)
		return err_sys(e, -r, "start the front");
	f.http.user = &f;
	r = loop_run(&f.loop);
	http_server_done(&f.http);
	http_tls_free(f.tls);
	front_retire_done(&f);
	boxes_free(&f);
	job_queue_done(&f.queue);
	auth_done(&f.auth);
	conn_done(&f.control);
	loop_done(&f.loop);
	return r < 0 ? err_sys(e, -r, "serve") : 0;
}
