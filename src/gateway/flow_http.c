/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain HTTP. The front checks each request head before it passes a byte of it on, and passes it
 * unchanged. It splices bodies with a length, and parses chunked bodies to find where the next
 * request begins. It parses answers only for the trace; an answer that it cannot parse passes too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"

enum { ROUNDS = 64 };

/* Send up to n of the peeked bytes. Returns how many, or -1 and f is freed. */
static int64_t pass_some(struct flow *f, enum flow_dir dir, struct str in, uint64_t n)
{
	struct side *from = &f->side[dir], *to = &f->side[!dir];
	uint64_t quota;
	ssize_t k;

	if (flow_quota(f, dir, &quota) < 0)
		return -1;
	if (n > in.n)
		n = in.n;
	if (n > quota)
		n = quota;
	if (n == 0)
		return 0;
	k = send(to->fd, in.p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (k < 0 && errno != EAGAIN) {
		flow_end(f, dir == UP ? "reset by the server" : "reset by the client", true);
		return -1;
	}
	to->full = k < (ssize_t)n;
	if (k <= 0)
		return 0;
	flow_discard(from, (size_t)k);
	flow_count(f, dir, (uint64_t)k);
	return k;
}

static void after_head(struct http_way *w, const struct http_head *h, size_t size)
{
	w->phase = PHASE_REST;
	w->left = size;
	switch (h->framing) {
	case HTTP_BODY_NONE:
		w->next = PHASE_HEAD;
		break;
	case HTTP_BODY_LENGTH:
		w->next = h->length ? PHASE_LENGTH : PHASE_HEAD;
		break;
	case HTTP_BODY_CHUNKED:
		w->next = PHASE_CHUNKED;
		break;
	case HTTP_BODY_CLOSE:
		w->next = PHASE_RAW;
		break;
	}
	http_body_init(&w->body, h);
}

static void remember(struct flow *f, const struct http_head *h)
{
	struct http_relay *r = f->http;
	struct http_pending *p = &r->pending[(r->first + r->n++) % HTTP_PENDING];
	size_t n = h->path.n < sizeof p->path ? h->path.n : sizeof p->path - 1;

	(void)str_copy(p->method, sizeof p->method, h->method);
	memcpy(p->path, h->path.p, n);
	p->path[n] = '\0';
	p->rule = f->rule;
	p->upgrade = h->websocket; /* after any other upgrade the front could not check requests */
}

/* 1: the request is allowed. 0: it names another host than this connection's (proxy). -1: f is
 * freed. */
static int check_request(struct flow *f, const struct http_head *h)
{
	char host[HOST_TEXT];
	struct policy_query q;
	struct policy_verdict v;

	if (h->is_connect || !h->has_host) {
		flow_refuse_http(f, 400,
				 h->is_connect ? "CONNECT needs the proxy's port"
					       : "there is no Host");
		return -1;
	}
	if (h->method.n >= sizeof((struct http_pending *)0)->method) {
		flow_refuse_http(f, 501, "the method is too long");
		return -1;
	}
	host_text(&h->host, host);
	if (f->http->absolute && (h->port ? h->port : 80) != f->port)
		return 0;
	if (f->http->absolute && f->name && strcmp(host, f->name) != 0)
		return 0;
	flow_query(f, &q);
	if (f->dialled.len)
		q.addr = f->dialled;
	q.has_request = true;
	q.host = str_of(host);
	q.host_port = h->port;
	q.method = h->method;
	q.path = h->path;
	policy_decide(f->g->policy, &q, &v);
	if (v.kind != POLICY_ALLOW) {
		v.kind = POLICY_DENY;
		flow_deny(f, &q, &v);
		return -1;
	}
	return flow_dial_recount(f, v.rule) ? 1 : -1;
}

/* 1: a head was read. 0: more bytes are needed. -1: f is freed. */
static int read_request(struct flow *f, struct str in)
{
	static struct http_head head;
	struct http_relay *r = f->http;
	struct side *s = &f->side[UP];
	int64_t n;
	int ok;

	if (r->n == HTTP_PENDING) {
		s->quiet = true; /* until an answer arrives */
		return 0;
	}
	n = http_request_parse(in, &head);
	if (n == 0 && !s->hup) {
		flow_await_more(s, in.n);
		return 0;
	}
	flow_await_more(s, 0);
	if (n == 0 && in.n == 0)
		return 0;
	if (n <= 0) {
		flow_refuse_http(f, n < 0 ? http_error_status(n) : 400,
				 n < 0 ? head.why : "the head is incomplete");
		return -1;
	}
	ok = check_request(f, &head);
	if (ok == 0) { /* the client opens another connection for that host */
		if (r->n == 0) {
			flow_end(f, "another host", false);
			return -1;
		}
		s->quiet = true;
		return 0;
	}
	if (ok < 0)
		return -1;
	remember(f, &head);
	after_head(&r->way[UP], &head, (size_t)n);
	return 1;
}

static void tell_http(struct flow *f, const struct http_pending *p, int status)
{
	struct subject s = { .owner = flow_owner(f),
			     .name = str_of(f->name),
			     .rule = p->rule ? p->rule->id : STR_NONE };
	struct gateway *g = f->g;
	size_t at;

	flow_tell_connected(f);
	if (event_begin(g, GW_KIND_HTTP, f->slot, &s, &at) < 0)
		return;
	event_text(g, GW_T_METHOD, str_of(p->method));
	event_text(g, GW_T_PATH, str_of(p->path));
	event_num(g, GW_T_STATUS, (uint64_t)status);
	/* With one client each turn is idle: told soon, every request would wake the warden. */
	event_end(g, at, EVENT_LATER);
}

static int read_response(struct flow *f, struct str in)
{
	static struct http_head head;
	struct http_relay *r = f->http;
	struct http_pending *p = &r->pending[r->first];
	struct http_way *w = &r->way[DOWN];
	struct side *s = &f->side[DOWN];
	int64_t n = r->n ? http_response_parse(in, str_of(p->method), &head) : -EBADMSG;

	if (n == 0 && !s->hup) {
		flow_await_more(s, in.n);
		return 0;
	}
	flow_await_more(s, 0);
	if (in.n == 0)
		return 0;
	if (n <= 0) { /* not HTTP: pass it to the client unparsed */
		w->phase = PHASE_RAW;
		return 1;
	}
	after_head(w, &head, (size_t)n);
	if (head.status / 100 == 1 && head.status != 101) {
		w->next = PHASE_HEAD;
		return 1;
	}
	tell_http(f, p, head.status);
	if (head.status == 101 && p->upgrade)
		w->next = r->way[UP].phase = PHASE_RAW;
	r->first = (r->first + 1) % HTTP_PENDING;
	r->n--;
	f->side[UP].quiet = false;
	return 1;
}

/* Count the bytes of `in` that belong to the body; *ret_end if the body ends there. */
static int follow(struct http_body *b, struct str in, size_t *ret_used, bool *ret_end)
{
	struct str rest = in, data;
	int r;

	*ret_end = false;
	do {
		r = http_body_next(b, &rest, &data);
	} while (r == HTTP_DATA && rest.n);
	if (r < 0)
		return r;
	*ret_end = r == HTTP_END;
	*ret_used = in.n - rest.n;
	return 0;
}

static int pass_chunked(struct flow *f, enum flow_dir dir, struct str in)
{
	struct http_way *w = &f->http->way[dir];
	struct http_body ahead = w->body;
	size_t used = 0;
	bool end;
	int64_t n;

	if (follow(&ahead, in, &used, &end) < 0) {
		if (dir == DOWN) {
			w->phase = PHASE_RAW;
			return 1;
		}
		flow_end(f, "malformed body", true);
		return -1;
	}
	n = pass_some(f, dir, in, used);
	if (n <= 0)
		return (int)n;
	(void)follow(&w->body, (struct str){ in.p, (size_t)n }, &used, &end);
	if (end)
		w->phase = PHASE_HEAD;
	return 1;
}

/* 1: call again. 0: wait for an event. -1: f is freed. */
static int step(struct flow *f, enum flow_dir dir)
{
	struct http_way *w = &f->http->way[dir];
	struct side *s = &f->side[dir];
	struct str in;
	uint64_t before, all = UINT64_MAX;
	int64_t n;
	int r;

	if (w->phase == PHASE_LENGTH || w->phase == PHASE_RAW) {
		before = f->way[dir].bytes;
		if (flow_pump(f, dir, w->phase == PHASE_RAW ? &all : &w->left) < 0)
			return -1;
		if (w->phase == PHASE_LENGTH && w->left == 0) {
			w->phase = PHASE_HEAD;
			return 1;
		}
		return f->way[dir].bytes != before && w->phase == PHASE_LENGTH;
	}
	if (s->eof)
		return 0;
	r = flow_peek(s, &in);
	if (r == -EAGAIN)
		return 0;
	if (r < 0) {
		flow_end(f, dir == UP ? "reset by the client" : "reset by the server", true);
		return -1;
	}
	if (s->eof)
		return 0;
	if (w->phase == PHASE_HEAD)
		return dir == UP ? read_request(f, in) : read_response(f, in);
	if (w->phase == PHASE_CHUNKED)
		return pass_chunked(f, dir, in);
	n = pass_some(f, dir, in, w->left);
	if (n <= 0)
		return (int)n;
	w->left -= (uint64_t)n;
	if (w->left == 0) {
		w->phase = w->next;
		w->left = w->phase == PHASE_LENGTH ? w->body.left : 0;
	}
	return 1;
}

static int run(struct flow *f, enum flow_dir dir)
{
	int r = 1;

	for (int i = 0; i < ROUNDS && r > 0 && !f->side[!dir].full; i++)
		r = step(f, dir);
	return r < 0 ? -1 : 0;
}

void flow_http(struct flow *f)
{
	if (run(f, UP) < 0 || run(f, DOWN) < 0)
		return;
	/* An answer frees a place for the next request, or turns the connection into a tunnel. */
	if (run(f, UP) < 0)
		return;
	flow_settle(f);
}
