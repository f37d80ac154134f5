/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/envd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/admit.h"
#include "api/e2b/port.h"
#include "api/e2b/sign.h"
#include "api/e2b/sign_search.h"
#include "api/error.h"
#include "api/server_key.h"
#include "base/b64.h"
#include "base/hmac.h"
#include "wire/connect_envelope.h"
#include "wire/json_write.h"

static void health(struct envd *v, struct box *b)
{
	(void)b;
	http_answer(v->q->http, 204, NULL, STR_NONE);
}

static const struct envd_route envd_routes[] = {
	{ "GET", "/health", .begin = health, .open = true },
	{ "GET", "/files", .begin = file_read, .file = true },
	{ "POST", "/files", .begin = file_write, .file = true },
	{ "POST", "/process.Process/Start", .rpc = process_start, .stream = true },
	{ "POST", "/process.Process/Connect", .rpc = process_connect, .stream = true },
	{ "POST", "/process.Process/List", .rpc = process_list },
	{ "POST", "/process.Process/SendInput", .rpc = process_input },
	{ "POST", "/process.Process/StreamInput", .begin = process_stream_input, .stream = true },
	{ "POST", "/process.Process/CloseStdin", .rpc = process_close_stdin },
	{ "POST", "/process.Process/SendSignal", .rpc = process_signal },
	{ "POST", "/process.Process/Update", .rpc = process_update },
	{ "POST", "/filesystem.Filesystem/Stat", .rpc = filesystem_stat },
	{ "POST", "/filesystem.Filesystem/MakeDir", .rpc = filesystem_make_dir },
	{ "POST", "/filesystem.Filesystem/Move", .rpc = filesystem_move },
	{ "POST", "/filesystem.Filesystem/ListDir", .rpc = filesystem_list },
	{ "POST", "/filesystem.Filesystem/Remove", .rpc = filesystem_remove },
	{ "POST", "/filesystem.Filesystem/WatchDir", .rpc = filesystem_watch, .stream = true },
	{ "POST", "/filesystem.Filesystem/CreateWatcher", .rpc = filesystem_create_watcher },
	{ "POST", "/filesystem.Filesystem/GetWatcherEvents", .rpc = filesystem_watcher_events },
	{ "POST", "/filesystem.Filesystem/RemoveWatcher", .rpc = filesystem_remove_watcher },
};

/* ---- answers ---- */

static const struct {
	const char *code;
	int status;
} statuses[] = { { "invalid_argument", 400 },	{ "failed_precondition", 400 },
		 { "unauthenticated", 401 },	{ "permission_denied", 403 },
		 { "not_found", 404 },		{ "already_exists", 409 },
		 { "resource_exhausted", 429 }, { "unimplemented", 501 },
		 { "unavailable", 503 },	{ "deadline_exceeded", 504 } };

static int status_of(const char *code)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (strcmp(statuses[i].code, code) == 0)
			return statuses[i].status;
	return 500;
}

static void put_failure(struct json *j, const char *code, const char *message)
{
	json_put_c(j, "code", code);
	json_put_c(j, "message", message);
}

static void fail_stream(struct http_request *r, const char *code, const char *message)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_obj(&j, "error");
	put_failure(&j, code, message);
	json_end(&j);
	json_end(&j);
	if (r->status == 0)
		(void)http_answer_begin(r, 200, "application/connect+json", HTTP_LENGTH_UNKNOWN);
	if (json_done(&j) == 0)
		(void)http_answer_envelope(r, ENVELOPE_END, buf_str(&b));
	http_answer_end(r);
}

void envd_fail(struct envd *v, const char *code, const char *fmt, ...)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);
	char text[1024];
	struct json j;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (v->route->stream) {
		fail_stream(v->q->http, code, text);
		return;
	}
	json_init(&j, &b);
	json_obj(&j);
	put_failure(&j, code, text);
	json_end(&j);
	if (json_done(&j) < 0)
		buf_clear(&b);
	http_answer(v->q->http, status_of(code), "application/json", buf_str(&b));
}

void envd_answer(struct envd *v, const struct buf *json)
{
	http_answer(v->q->http, 200, "application/json", buf_str(json));
}

void envd_gone(struct envd *v, const struct err *why)
{
	port_gone(v->q, why);
}

bool envd_path(const struct envd *v, const char *given, char out[ENVD_PATH])
{
	const char *user = v->user[0] ? v->user : "user";
	char home[ENVD_USER + 16];
	int n;

	(void)snprintf(home, sizeof home, strcmp(user, "root") == 0 ? "/root" : "/home/%s", user);
	if (given[0] == '~' && (given[1] == '/' || !given[1]))
		given += given[1] ? 2 : 1;
	else if (given[0] == '/')
		home[0] = '\0';
	n = snprintf(out, ENVD_PATH, "%s%s%s", home, home[0] && given[0] ? "/" : "", given);
	return n > 0 && n < ENVD_PATH;
}

/* ---- requests ---- */

/* An RPC's message: JSON, in an envelope where it is a stream. Empty is {}. */
static json_t *read_message(const struct envd *v, struct str body)
{
	struct envelope env = { .payload = body };

	if (v->route->stream &&
	    (envelope_parse(body, ENVD_BODY, &env) <= 0 || env.flags & ENVELOPE_COMPRESSED))
		return NULL;
	return env.payload.n ? json_load_object(env.payload) : json_object();
}

static void on_body(struct http_request *r, struct str body)
{
	struct api_request *q = r->user;
	struct envd *v = q->user;
	struct box *b = box_find(q->front, q->id);
	auto_done(json_free) json_t *message = read_message(v, body);

	if (!b)
		envd_gone(v, NULL);
	else if (!message)
		envd_fail(v, "invalid_argument", "the message is not a JSON object");
	else
		v->route->rpc(v, b, message);
}

void envd_ended(struct http_request *r, enum http_end why)
{
	struct api_request *q = r->user;
	struct envd *v = q->user;

	(void)why;
	if (v->route)
		api_count(q, v->route->method, v->route->path);
	else
		api_count(q, "", "envd");
	box_want_drop(&v->want);
	if (v->own_done)
		v->own_done(v);
	admit_done(q);
	free(v);
	free(q);
}

static const struct http_handler rpc_handler = { .body = on_body, .ended = envd_ended };

/* A signature stands for one path and the user in its query, which no header may change. */
enum access { ACCESS_NONE, ACCESS_SIGNED, ACCESS_TOKEN };

static enum access access_of(const struct envd *v, const char **ret_why)
{
	static const char *const why[] = {
		[SIGN_MISSING] = "missing signature query parameter",
		[SIGN_WRONG] = "invalid signature",
		[SIGN_EXPIRED] = "signature is already expired",
	};
	const struct str *given = http_request_header(v->q->http, "x-access-token");
	char token[TOKEN_SIZE];
	enum sign sign;

	server_token(v->q->front->secret, "envd", v->q->id, token);
	*ret_why = "unauthorized access, please provide a valid access token or method signing if "
		   "supported";
	if (given && secret_eq(*given, str_of(token)))
		return ACCESS_TOKEN;
	if (!v->route->file)
		return ACCESS_NONE;
	*ret_why = "access token present in header but does not match";
	if (given)
		return ACCESS_NONE;
	sign = sign_check(v->q->http, token);
	if (sign == SIGN_FITS)
		return ACCESS_SIGNED;
	*ret_why = why[sign];
	return ACCESS_NONE;
}

static void on_box(struct box_want *w, struct box *b, const struct err *why)
{
	struct envd *v = container_of(w, struct envd, want);

	if (!b) {
		if (!w->proven)
			admit_note_failure(v->q);
		envd_gone(v, why);
		return;
	}
	if (w->proven)
		http_request_trust(v->q->http);
	if (!admit_call(v->q, b->owner, w->proven))
		return;
	if (v->route->begin)
		v->route->begin(v, b);
	else
		(void)http_request_buffer(v->q->http, ENVD_BODY);
}

/* Authorization: Basic base64("USER:"). False: malformed. */
static bool take_user(struct envd *v)
{
	static const struct str basic = { "Basic ", sizeof "Basic " - 1 };
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	const struct str *h = http_request_header(v->q->http, "authorization");
	const char *colon;

	if (!h || !str_starts(*h, basic))
		return true;
	if (b64_decode(&b, (struct str){ h->p + basic.n, h->n - basic.n }) < 0 || !b.len)
		return false;
	colon = memchr(b.data, ':', b.len);
	return str_copy(v->user, sizeof v->user,
			(struct str){ b.data, colon ? (size_t)(colon - b.data) : b.len });
}

static void start(struct envd *v)
{
	struct http_request *r = v->q->http;
	enum access access;
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(envd_routes) && !v->route; i++)
		if (str_is(r->path, envd_routes[i].path) &&
		    str_is(r->method, envd_routes[i].method))
			v->route = &envd_routes[i];
	if (!v->route) {
		api_refuse(r, 404, "not found");
		return;
	}
	access = access_of(v, &why);
	if (!v->route->open && access == ACCESS_NONE) {
		admit_refuse(v->q, why);
		return;
	}
	v->want.proven = access != ACCESS_NONE;
	if (!v->want.proven &&
	    (!admit_host(v->q) || (!box_find(v->q->front, v->q->id) && !admit_stranger(v->q))))
		return;
	if (access != ACCESS_SIGNED && !take_user(v)) {
		envd_fail(v, "unauthenticated", "the Authorization header is malformed");
		return;
	}
	v->want.done = on_box;
	v->want.uses = !v->route->open;
	box_want(v->q->front, v->q->id, &v->want);
}

/* "49983-ID.domain"; without a domain of ours any will do. */
static bool host_names(struct api_request *q, uint16_t *ret_port)
{
	const struct http_head *h = http_request_head(q->http);
	const char *name = h->has_host ? h->host.name : "", *dash = strchr(name, '-');
	const char *dot = strchr(name, '.');

	return dash && dot && dash < dot && names_have_domain(&q->front->names, dot + 1) &&
	       port_parse((struct str){ name, (size_t)(dash - name) }, ret_port) == 0 &&
	       str_copy(q->id, sizeof q->id, (struct str){ dash + 1, (size_t)(dot - dash - 1) });
}

static bool is_for_sandbox(struct api_request *q, uint16_t *ret_port)
{
	const struct str *id = http_request_header(q->http, "e2b-sandbox-id");
	const struct str *port = http_request_header(q->http, "e2b-sandbox-port");

	q->port_host = host_names(q, ret_port);
	if (q->port_host)
		return true;
	return id && port && str_copy(q->id, sizeof q->id, *id) && port_parse(*port, ret_port) == 0;
}

/* A request to envd of the sandbox q->id. */
static void begin(struct api_request *q)
{
	struct envd *v = calloc(1, sizeof *v);

	if (!v) {
		api_refuse(q->http, 503, "out of memory");
		return;
	}
	v->q = q;
	q->user = v;
	q->http->handler = &rpc_handler;
	start(v);
}

bool envd_begin(struct api_request *q)
{
	uint16_t port;

	if (!is_for_sandbox(q, &port)) {
		q->id[0] = '\0';
		return sign_search(q, begin);
	}
	if (!state_id_ok(q->id))
		port_gone(q, NULL);
	else if (port != ENVD_PORT)
		port_begin(q, port);
	else
		begin(q);
	return true;
}
