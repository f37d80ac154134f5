/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/watch.h"

#include <stdlib.h>
#include <string.h>

#include "api/e2b/entry.h"
#include "api/e2b/events.h"
#include "api/fields.h"
#include "base/clock.h"

enum { IN_MOST = 1 << 20, MISSING = 44, WRONG_TYPE = 20 };

static const char killed[] = "The sandbox was killed or reached its end of life while the request "
			     "was in flight.";

/* ---- the call ---- */

static struct watch *watch_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct watch, call);
}

void watch_stop(struct watch *w)
{
	box_call_done(&w->call);
	buf_done(&w->in);
}

static void fail(struct watch *w, const char *code, const char *text)
{
	watch_stop(w);
	w->ops->failed(w, code, text);
}

/* Tell the events that are here. False: w has failed, and may be freed. */
static bool drain(struct watch *w)
{
	struct str rest = buf_str(&w->in);
	struct watch_event e;
	int r = 0;

	while (!w->full && (r = watch_event_next(&rest, &e)) == 1) {
		if (e.kind == WATCH_READY)
			w->ops->ready(w);
		else
			w->full = w->ops->event(w, &e) != 0;
	}
	if (r < 0) {
		fail(w, "internal", "the sandbox gave a malformed answer");
		return false;
	}
	buf_shift(&w->in, w->in.len - rest.n);
	if (!w->full && w->held) {
		link_call_taken(&w->call.call, CALL_STDOUT, w->held);
		w->held = 0;
	}
	return true;
}

void watch_room(struct watch *w)
{
	w->full = false;
	if (w->call.box)
		(void)drain(w);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct watch *w = watch_of(c);

	if (stream == CALL_STDERR) {
		file_complaint_add(&w->complaint, data);
		link_call_taken(c, stream, data.n);
		return;
	}
	w->held += data.n;
	if (buf_add_str(&w->in, data) < 0)
		fail(w, "internal", "the sandbox gave a malformed answer");
	else
		(void)drain(w);
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct watch *w = watch_of(c);
	char text[ENVD_PATH + 64];

	if (why && why->kind == ERR_UNAVAILABLE) {
		fail(w, "unavailable", killed);
	} else if (why && strstr(why->msg, "user")) {
		(void)snprintf(text, sizeof text, "invalid username: '%s'", w->user);
		fail(w, "unauthenticated", text);
	} else if (why) {
		fail(w, "internal", why->msg);
	} else if (strcmp(res->reason, "sandbox_ended") == 0) {
		fail(w, "unavailable", killed);
	} else if (res->code == MISSING || res->code == WRONG_TYPE) {
		(void)snprintf(text, sizeof text, "path '%s' %s", w->path,
			       res->code == MISSING ? "does not exist" : "is not a directory");
		fail(w, res->code == MISSING ? "not_found" : "invalid_argument", text);
	} else {
		fail(w, "internal", w->complaint.text);
	}
}

static void on_gone(struct box_call *c, const struct err *why)
{
	(void)why;
	fail(container_of(c, struct watch, call), "unavailable", killed);
}

int watch_start(struct watch *w, struct envd *v, struct box *b, const json_t *body,
		const struct watch_ops *ops)
{
	static const struct link_call_ops call_ops = { .output = on_output, .ended = on_ended };
	bool deep = false, entries = false;
	const char *argv[3] = { 0 }, *path = "";
	struct err e = { 0 };
	int n = 0;

	*w = (struct watch){ .ops = ops, .call.gone = on_gone, .in = BUF_INIT(IN_MOST) };
	(void)str_copy(w->user, sizeof w->user, str_of(v->user));
	if (field_text(body, "path", &path, &e) < 0 ||
	    field_bool(body, "recursive", &deep, &e) < 0 ||
	    field_bool(body, "includeEntry", &entries, &e) < 0 || !envd_path(v, path, w->path)) {
		envd_fail(v, "invalid_argument", "%s", e.msg[0] ? e.msg : "path is too long");
		return -1;
	}
	if (deep)
		argv[n++] = "deep";
	if (entries)
		argv[n++] = "entries";
	const struct call_spec spec = { .op = CALL_WATCH,
					.argv = argv,
					.path = w->path,
					.cwd = "/",
					.user = w->user[0] ? w->user : NULL };

	if (box_call(b, &w->call, &spec, &call_ops) == 0)
		return 0;
	envd_fail(v, "unavailable", "the sandbox takes no more requests just now");
	return -1;
}

void watch_put(struct json *j, const struct watch_event *e)
{
	static const struct {
		enum watch_kind kind;
		const char *type;
	} rows[] = { { WATCH_CREATE, "EVENT_TYPE_CREATE" },
		     { WATCH_WRITE, "EVENT_TYPE_WRITE" },
		     { WATCH_REMOVE, "EVENT_TYPE_REMOVE" },
		     { WATCH_RENAME, "EVENT_TYPE_RENAME" },
		     { WATCH_CHMOD, "EVENT_TYPE_CHMOD" } };

	json_obj(j);
	json_put_str(j, "name", e->name);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].kind == e->kind)
			json_put_c(j, "type", rows[i].type);
	if (e->has_entry) {
		json_key(j, "entry");
		entry_put(j, &e->entry);
	}
	json_end(j);
}

/* ---- Filesystem.WatchDir: a stream of events ---- */

struct watching {
	struct watch w;
	struct envd *v;
	struct loop_timer deadline, ping;
	uint64_t ping_ns;
};

static void on_ping(struct loop_timer *t)
{
	struct watching *g = container_of(t, struct watching, ping);

	(void)http_answer_envelope(g->v->q->http, 0, STR("{\"keepalive\":{}}"));
	loop_timer_set(&g->v->q->front->loop, &g->ping, g->ping_ns, on_ping);
}

static void on_deadline(struct loop_timer *t)
{
	struct watching *g = container_of(t, struct watching, deadline);

	watch_stop(&g->w);
	envd_fail(g->v, "deadline_exceeded", "the time for this watch is over");
}

static void on_ready(struct watch *w)
{
	struct watching *g = container_of(w, struct watching, w);
	struct http_request *r = g->v->q->http;

	(void)http_answer_begin(r, 200, "application/connect+json", HTTP_LENGTH_UNKNOWN);
	(void)http_answer_envelope(r, 0, STR("{\"start\":{}}"));
	g->ping_ns = event_header_number(r, "keepalive-ping-interval") * NS_PER_S;
	if (g->ping_ns)
		loop_timer_set(&g->v->q->front->loop, &g->ping, g->ping_ns, on_ping);
}

static int on_event(struct watch *w, const struct watch_event *e)
{
	struct watching *g = container_of(w, struct watching, w);
	auto_done(buf_done) struct buf b = BUF_INIT(IN_MOST);
	struct json j;

	if (e->kind == WATCH_SYNC)
		return 0;
	json_init(&j, &b);
	json_obj(&j);
	json_key(&j, "filesystem");
	watch_put(&j, e);
	json_end(&j);
	if (json_done(&j) < 0)
		return 0;
	return http_answer_envelope(g->v->q->http, 0, buf_str(&b)) == 1;
}

static void on_failed(struct watch *w, const char *code, const char *text)
{
	envd_fail(container_of(w, struct watching, w)->v, code, "%s", text);
}

static void on_room(struct http_request *r)
{
	struct watching *g = envd_of(r)->own;

	watch_room(&g->w);
}

static void watching_done(struct envd *v)
{
	struct watching *g = v->own;

	loop_timer_stop(&v->q->front->loop, &g->deadline);
	loop_timer_stop(&v->q->front->loop, &g->ping);
	watch_stop(&g->w);
	free(g);
}

void filesystem_watch(struct envd *v, struct box *b, const json_t *body)
{
	static const struct watch_ops ops = { on_ready, on_event, on_failed };
	static const struct http_handler handler = { .room = on_room, .ended = envd_ended };
	uint64_t ms = event_header_number(v->q->http, "connect-timeout-ms");
	struct watching *g = calloc(1, sizeof *g);

	if (!g) {
		envd_fail(v, "internal", "out of memory");
		return;
	}
	g->v = v;
	v->own = g;
	v->own_done = watching_done;
	v->q->http->handler = &handler;
	if (watch_start(&g->w, v, b, body, &ops) == 0 && ms)
		loop_timer_set(&v->q->front->loop, &g->deadline, ms * NS_PER_MS, on_deadline);
}
