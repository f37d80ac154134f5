/* SPDX-License-Identifier: Apache-2.0 */
/* From an allowed target to an open connection: directly, or through the host's proxy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/dial.h"
#include "gateway/flow.h"

enum { DIAL_MS = 5000, VIA_MS = 15000, VIA_GREETED = 1, VIA_ASKED = 2 };

void flow_tell_connected(struct flow *f)
{
	struct gateway *g = f->g;
	struct subject s;
	size_t at;

	if (!f->open || f->told)
		return;
	flow_subject(f, &s);
	f->told = true;
	if (event_begin(g, GW_KIND_CONNECT, f->slot, &s, &at) < 0)
		return;
	if (f->looked)
		event_text(g, GW_T_PROTO, str_of(policy_proto_name(f->proto)));
	event_end(g, at, EVENT_SOON);
	flow_tell_tls(f);
}

void flow_tell_tls(struct flow *f)
{
	struct gateway *g = f->g;
	size_t at;

	if (!f->hello || !f->looked || f->tls_told)
		return;
	flow_tell_connected(f);
	if (f->tls_told || event_begin(g, GW_KIND_TLS, f->slot,
				       &(struct subject){ .owner = flow_owner(f) }, &at) < 0)
		return;
	f->tls_told = true;
	event_text(g, GW_T_SNI, str_of(f->hello->sni));
	event_text(g, GW_T_ALPN, str_of(f->hello->alpn));
	event_text(g, GW_T_VERSION, str_of(tls_version_text(f->hello->version)));
	event_end(g, at, EVENT_SOON);
}

/* The first bytes go before anything is looked up or told of it: the client waits for them. */
static void opened(struct flow *f)
{
	struct gateway *g = f->g;
	uint32_t slot = f->slot;

	flow_deadline(f, 0);
	f->open = true;
	if (f->silent) {
		flow_tell_connected(f);
		f->looked = false;
		f->sniff = true;
	}
	f->state = FLOW_PASS;
	f->side[UP].ready = true; /* most clients have spoken by now */
	f->via_step = 0;
	if (flow_front_opened(f) < 0) {
		flow_end(f, "reset by the client", true);
		return;
	}
	if (f->http)
		flow_http(f);
	else
		flow_pass(f);
	if (g->flows[slot] != f)
		return;
	flow_tell_connected(f);
	dial_keep(f->side[DOWN].fd);
}

static bool count(struct flow *f)
{
	struct meter *m = meter_of(f->g, f->rule);
	uint64_t now = clock_mono_ns();
	enum meter_hit hit = meter_open(&f->g->total, now);

	if (hit == METER_OK && m) {
		hit = meter_open(m, now);
		if (hit != METER_OK)
			meter_close(&f->g->total);
	}
	f->counted = hit == METER_OK;
	if (hit != METER_OK)
		flow_deny_limit(f, hit);
	return f->counted;
}

static int say_via(struct flow *f, struct str words)
{
	return send(f->side[DOWN].fd, words.p, words.n, MSG_DONTWAIT | MSG_NOSIGNAL) ==
			       (ssize_t)words.n
		       ? 0
		       : -1;
}

static int ask_via_http(struct flow *f)
{
	const struct via *v = &f->g->via;
	char words[1024];
	int n = snprintf(words, sizeof words, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 f->name, f->port, f->name, f->port,
			 v->auth[0] ? "Proxy-Authorization: " : "", v->auth,
			 v->auth[0] ? "\r\n" : "");

	f->via_step = VIA_ASKED;
	return n < (int)sizeof words ? say_via(f, (struct str){ words, (size_t)n }) : -1;
}

static int ask_via_socks(struct flow *f)
{
	size_t n = strlen(f->name);
	char words[HOST_TEXT + 8] = { 5, 1, 0, 3, (char)n };

	memcpy(words + 5, f->name, n);
	words[5 + n] = (char)(f->port >> 8);
	words[6 + n] = (char)(f->port & 0xff);
	f->via_step = VIA_ASKED;
	return say_via(f, (struct str){ words, 7 + n });
}

static void connected(struct flow *f)
{
	if (!f->via) {
		opened(f);
		return;
	}
	f->state = FLOW_VIA;
	f->via_step = VIA_GREETED;
	flow_deadline(f, VIA_MS);
	if ((f->g->via.socks ? say_via(f, (struct str){ "\5\1\0", 3 }) : ask_via_http(f)) < 0)
		flow_fail(f, EPIPE);
	else
		flow_watch(f);
}

static int start(struct flow *f, const struct ip *ip, uint16_t port)
{
	struct side *s = &f->side[DOWN];
	bool open = false;

	loop_del(&f->g->loop, &s->io);
	fd_close(&s->fd);
	s->fd = dial_start(ip, port, &open);
	if (s->fd < 0) {
		f->dial_err = -s->fd;
		s->fd = FD_NONE;
		return -1;
	}
	flow_fit_buffers(f->g, s->fd);
	f->state = FLOW_DIAL;
	if (open) { /* near by: no need to wait for the news of it */
		connected(f);
		return 0;
	}
	flow_deadline(f, f->via ? VIA_MS : DIAL_MS);
	flow_watch(f);
	return 0;
}

static void on_via_resolved(struct resolve_wait *w, const struct resolve_answer *a)
{
	struct flow *f = container_of(w, struct flow, wait);

	if (a->status < 0 || start(f, &a->addrs[0], f->g->via.port) < 0)
		flow_fail(f, a->status < 0 ? -a->status : f->dial_err);
}

/* The proxy is the host's own choice, so its address is not subject to the policy. */
static void dial_via(struct flow *f)
{
	const struct via *v = &f->g->via;

	if (f->at > 0) {
		flow_fail(f, f->dial_err);
		return;
	}
	if (!f->counted && !count(f))
		return;
	if (!v->host.ip.len)
		flow_resolve(f, v->host.name, on_via_resolved);
	else if (start(f, &v->host.ip, v->port) < 0)
		flow_fail(f, f->dial_err);
}

void flow_dial(struct flow *f)
{
	struct policy_query q;
	struct policy_verdict v, denied = { .kind = POLICY_ALLOW };

	if (f->via) {
		dial_via(f);
		return;
	}
	for (; f->at < f->addrs.n; f->at++) {
		flow_query(f, &q);
		q.addr = f->addrs.addrs[f->at];
		dial_allowed(f->g, &q, &v);
		if (v.kind == POLICY_DENY) {
			denied = v;
			continue;
		}
		f->rule = v.rule;
		if (!f->counted && !count(f))
			return;
		if (start(f, &q.addr, f->port) == 0)
			return;
	}
	flow_query(f, &q);
	q.addr = f->addrs.addrs[0];
	if (denied.kind == POLICY_DENY && !f->dial_err)
		flow_deny(f, &q, &denied);
	else
		flow_fail(f, f->dial_err ? f->dial_err : EHOSTUNREACH);
}

void flow_dialled(struct flow *f)
{
	struct side *s = &f->side[DOWN];
	socklen_t size = sizeof f->dial_err;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &f->dial_err, &size) < 0)
		f->dial_err = errno;
	if (f->dial_err) {
		f->at++;
		flow_dial(f);
		return;
	}
	connected(f);
}

/* Bytes of the proxy's answer, 0 for more, -1 where it refuses. */
static int64_t read_via_http(struct str in)
{
	static struct http_head head;
	int64_t n = http_response_parse(in, STR("CONNECT"), &head);

	return n > 0 && head.status / 100 != 2 ? -1 : n;
}

static int64_t read_via_socks(struct flow *f, struct str in)
{
	const uint8_t *b = (const uint8_t *)in.p;
	size_t need;

	if (f->via_step == VIA_GREETED) {
		if (in.n < 2)
			return 0;
		return b[0] == 5 && b[1] == 0 ? 2 : -1;
	}
	if (in.n < 5)
		return 0;
	need = b[3] == 1 ? 10 : b[3] == 4 ? 22 : b[3] == 3 ? 7u + b[4] : 0;
	if (b[0] != 5 || b[1] != 0 || need == 0)
		return -1;
	return in.n < need ? 0 : (int64_t)need;
}

void flow_via(struct flow *f)
{
	struct side *s = &f->side[DOWN];
	struct str in;
	int64_t n;
	int r = flow_peek(s, &in);

	if (r == -EAGAIN)
		return;
	n = r < 0 || s->eof ? -1 : f->g->via.socks ? read_via_socks(f, in) : read_via_http(in);
	if (n < 0) {
		flow_fail(f, ECONNREFUSED);
		return;
	}
	if (n == 0) {
		flow_await_more(s, in.n);
		return;
	}
	flow_discard(s, (size_t)n);
	flow_await_more(s, 0);
	if (f->via_step == VIA_ASKED)
		opened(f);
	else if (ask_via_socks(f) < 0)
		flow_fail(f, EPIPE);
}
