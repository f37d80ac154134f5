/* SPDX-License-Identifier: Apache-2.0 */
#include "api/front.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/admit.h"
#include "api/e2b/envd.h"
#include "api/error.h"
#include "api/front_handlers.h"
#include "api/front_jail.h"
#include "api/worker.h"
#include "base/clock.h"
#include "wire/json_load.h"

enum { CONTROL = 3, BODY_MOST = 1 << 20, DRAIN_MS = 10000, DRAIN_LOOK_MS = 20, QUICK_MORE = 2 };

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

	if (body.n && !text)
		api_refuse(r, 400, "the body is not a JSON object");
	else if (admit_creations(q, v))
		api_ask_worker(q, str_of(text));
}

static const struct http_handler job_handler = { .body = on_body, .ended = on_ended };

/* Who asks, and whether this one may. False: answered. */
static bool admit(struct api_request *q, bool other)
{
	struct http_request *r = q->http;
	int refused;

	if (q->route && q->route->flags & ROUTE_OPEN)
		return admit_host(q);
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
	return admit_origin(q) && admit_key(q);
}

static void begin_routed(struct api_request *q)
{
	struct http_request *r = q->http;
	bool other;

	q->route = route_find(routes, nroutes, r->method, r->path, q->id, sizeof q->id, &other);
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
	r->user = q;
	r->handler = &job_handler;
	if (!envd_begin(q))
		begin_routed(q);
}

static const char *on_refuse(struct http_server *s, struct http_request *r, int status,
			     const char *why, struct buf *out)
{
	(void)s;
	(void)r;
	if (api_error_put(out, status, why, NULL) < 0)
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
	if (q->front->auth.known)
		http_answer(q->http, 200, "application/json", STR("{\"status\":\"ready\"}"));
	else
		api_refuse(q->http, 503, "no worker has answered yet");
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

/* ---- the supervisor ---- */

static void host_start(void *ctx, int slot)
{
	struct front *f = ctx;

	(void)CONN_SAY(&f->control, F_START, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
}

static void host_kill(void *ctx, int slot)
{
	struct front *f = ctx;

	(void)CONN_SAY(&f->control, F_KILL, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
}

static int read_setting(struct front *f, const struct field *field, bool *has_secret)
{
	switch (field->tag) {
	case CONTROL_SECRET:
		if (field->value.n != sizeof f->secret)
			return -EBADMSG;
		memcpy(f->secret, field->value.p, sizeof f->secret);
		*has_secret = true;
		return 0;
	case CONTROL_DOMAIN:
		return names_add_domain(&f->names, field->value);
	case CONTROL_ORIGIN:
		return names_add_origin(&f->names, field->value);
	default:
		return -EBADMSG;
	}
}

static int begin(struct front *f, const struct frame *frame, const int *fds)
{
	struct str body = frame->body;
	bool has_secret = false;
	struct field field;
	int r;

	if (f->begun || frame->nfds > CONTROL_LISTENERS)
		return -EBADMSG;
	while ((r = field_next(&body, &field)) == 1)
		if (read_setting(f, &field, &has_secret) < 0)
			return -EBADMSG;
	if (r < 0 || !has_secret)
		return -EBADMSG;
	f->begun = true;
	for (int i = 0; i < frame->nfds; i++)
		f->waiting[f->nlisteners++] = fds[i];
	front_ask_keys(f);
	return 0;
}

void front_accept(struct front *f)
{
	if (f->accepts)
		return;
	f->accepts = true;
	for (int i = 0; i < f->nlisteners; i++)
		(void)http_listen_add(&f->http, &f->listeners[i], f->waiting[i], NULL);
	(void)conn_send(&f->control, F_READY, 0, STR_NONE);
}

static int slot_of(const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t slot;

	if (field_next(&body, &field) != 1 || field_u64(field, &slot) < 0 || slot >= JOB_WORKERS)
		return -1;
	return (int)slot;
}

static void on_drain(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, drain);

	if (f->http.counters.conns == 0 || clock_mono_ns() > f->drain_until_ns)
		loop_stop(&f->loop);
	else
		loop_timer_set(&f->loop, t, DRAIN_LOOK_MS * NS_PER_MS, on_drain);
}

static void drain(struct front *f)
{
	f->drain_until_ns = clock_mono_ns() + DRAIN_MS * NS_PER_MS;
	http_server_drain(&f->http);
	loop_timer_set(&f->loop, &f->drain, 0, on_drain);
}

static void on_control(struct conn *c, const struct frame *frame, int *fds)
{
	struct front *f = container_of(c, struct front, control);
	int slot = slot_of(frame);

	if (frame->type == F_WORKER && slot >= 0 && frame->nfds == 2) {
		job_queue_started(&f->queue, slot, fds[0], fds[1]);
		return;
	}
	if (frame->type == F_BEGIN) {
		if (begin(f, frame, fds) < 0)
			loop_stop(&f->loop);
		return;
	}
	for (int i = 0; i < frame->nfds; i++)
		(void)close(fds[i]);
	if (frame->type == F_GONE && slot >= 0)
		job_queue_gone(&f->queue, slot);
	else if (frame->type == F_KEYS)
		front_ask_keys(f);
	else if (frame->type == F_STOP)
		drain(f);
}

static void on_supervisor_left(struct conn *c, int err)
{
	struct front *f = container_of(c, struct front, control);

	(void)err;
	conn_done(c);
	drain(f);
}

int front_run(struct err *e)
{
	static const struct conn_ops control_ops = { .frame = on_control,
						     .closed = on_supervisor_left };
	static struct front f; /* one per process */
	const struct job_host host = { host_start, host_kill, &f };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r = loop_init(&f.loop);

	(void)signal(SIGPIPE, SIG_IGN);
	job_queue_init(&f.queue, &f.loop, &api_jobs, &host,
		       cpus > 0 && cpus < JOB_QUICK_MOST ? (int)cpus + QUICK_MORE : JOB_QUICK_MOST,
		       JOB_LONG_MOST);
	if (r == 0)
		r = conn_init(&f.control, &f.loop, CONTROL, &control_ops);
	if (r == 0)
		r = http_server_init(&f.http, &f.loop, &app, NULL);
	if (r == 0)
		r = strangers_init(&f.strangers);
	if (r == 0)
		r = front_jail();
	if (r < 0)
		return err_sys(e, -r, "start the front");
	f.http.user = &f;
	r = loop_run(&f.loop);
	http_server_done(&f.http);
	boxes_free(&f);
	job_queue_done(&f.queue);
	auth_done(&f.auth);
	conn_done(&f.control);
	loop_done(&f.loop);
	return r < 0 ? err_sys(e, -r, "serve") : 0;
}
