/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "api/admit.h"
#include "api/e2b/box.h"
#include "api/error.h"
#include "api/server_key.h"
#include "base/hmac.h"
#include "http/proxy.h"
#include "wire/json_write.h"

enum { DIAL_MS = 30000 };

struct port {
	struct box_port in; /* the box's list */
	struct box_want want;
	struct link_dial dial;
	struct api_request *q;
	uint16_t number;
};

/* ---- answers ---- */

/* port 0: not told */
static void refuse(const struct api_request *q, int status, const char *message, unsigned port)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_c(&j, "sandboxId", q->id);
	json_put_c(&j, "message", message);
	if (port)
		json_put_u64(&j, "port", port);
	json_put_i64(&j, "code", status);
	json_end(&j);
	if (json_done(&j) < 0)
		buf_clear(&b);
	http_answer(q->http, status, "application/json", buf_str(&b));
}

void port_gone(struct api_request *q, const struct err *why)
{
	if (why && why->kind != ERR_NOT_FOUND && why->kind != ERR_UNAVAILABLE)
		api_refuse_err(q->http, why);
	else
		refuse(q, 502, "The sandbox was not found", 0);
}

static void closed(struct port *p)
{
	box_port_remove(&p->in);
	refuse(p->q, 502, "The sandbox is running but port is not open", p->number);
}

/* ---- the connection inside ---- */

static void port_free(struct port *p)
{
	api_count(p->q, "", "port");
	admit_done(p->q);
	box_want_drop(&p->want);
	link_dial_drop(&p->dial);
	box_port_remove(&p->in);
	free(p->q);
	free(p);
}

static void on_ended(struct http_request *r, enum http_end why)
{
	struct api_request *q = r->user;

	(void)why;
	port_free(q->user);
}

static void on_proxy_ended(void *user, int fd)
{
	fd_close(&fd);
	port_free(user);
}

static void on_proxy_failed(struct http_request *r, void *user, int status)
{
	const struct port *p = user;

	(void)r;
	refuse(p->q, status,
	       status == 504 ? "The port did not answer in time"
			     : "The port's answer is not HTTP, or was cut",
	       p->number);
}

/* Its sandbox is gone, or the key of it. */
static void on_box_gone(struct box_port *in)
{
	struct port *p = container_of(in, struct port, in);

	if (p->q->http->status)
		http_request_cut(p->q->http);
	else
		port_gone(p->q, NULL);
}

/* A key of ours in Authorization; anything else there is for the program inside. */
static bool has_key(struct http_request *r)
{
	static const struct str ours = { "Bearer e2b_", sizeof "Bearer e2b_" - 1 };
	const struct str *v = http_request_header(r, "authorization");

	return v && str_starts(*v, ours);
}

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	/* What opens this server is not for the programs of a sandbox. */
	static const char *const secrets[] = { "authorization",
					       "x-api-key",
					       "x-access-token",
					       "e2b-traffic-access-token",
					       "e2b-sandbox-id",
					       "e2b-sandbox-port",
					       NULL };
	struct port *p = container_of(d, struct port, dial);
	struct http_request *r = p->q->http;
	const struct http_proxy_options o = {
		.remove = secrets + (has_key(r) ? 0 : 1),
		.forwarded_proto = http_request_is_tls(r) ? "https" : "http",
		.failed = on_proxy_failed,
		.ended = on_proxy_ended,
		.user = p,
	};
	int on = 1;

	(void)why;
	if (fd < 0) {
		closed(p);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (http_proxy_start(r, fd, &o) < 0)
		api_refuse(r, 503, "out of memory");
}

/* ---- who may ---- */

static const struct str *given_token(struct api_request *q)
{
	return http_request_header(q->http, "e2b-traffic-access-token");
}

static bool has_token(struct api_request *q)
{
	const struct str *given = given_token(q);
	char token[TOKEN_SIZE];

	server_token(q->front->secret, "traffic", q->id, token);
	return given && secret_eq(*given, str_of(token));
}

static bool may_use(const struct port *p, const struct box *b)
{
	const struct str *given = given_token(p->q);

	if (!b->token_for_ports || p->want.proven)
		return true;
	admit_note_failure(p->q);
	refuse(p->q, 403,
	       given ? "Sandbox is secured with traffic access token. Token in header "
		       "'e2b-traffic-access-token' is invalid"
		     : "Sandbox is secured with traffic access token. Token header "
		       "'e2b-traffic-access-token' is missing",
	       0);
	return false;
}

static void on_box(struct box_want *w, struct box *b, const struct err *why)
{
	struct port *p = container_of(w, struct port, want);

	if (!b) {
		if (!w->proven)
			admit_note_failure(p->q);
		port_gone(p->q, why);
		return;
	}
	if (!may_use(p, b) || !admit_call(p->q, b->owner, w->proven))
		return;
	http_request_trust(p->q->http);
	box_port_add(b, &p->in);
	p->dial.done = on_dialed;
	if (link_dial(b->link, &p->dial, p->number, DIAL_MS) < 0)
		closed(p);
}

void port_begin(struct api_request *q, uint16_t port)
{
	static const struct http_handler handler = { .ended = on_ended };
	struct port *p = calloc(1, sizeof *p);

	if (!p) {
		api_refuse(q->http, 503, "out of memory");
		return;
	}
	*p = (struct port){ .q = q,
			    .number = port,
			    .in.gone = on_box_gone,
			    .want.done = on_box,
			    .want.uses = true };
	q->user = p;
	q->http->handler = &handler;
	p->want.proven = has_token(q);
	if (!p->want.proven &&
	    (!admit_host(q) || (!box_find(q->front, q->id) && !admit_stranger(q))))
		return;
	box_want(q->front, q->id, &p->want);
}
