/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Through the host's proxy: it is dialled, asked for the name, and its answer awaited.
 *
 *   HTTP   CONNECT ── answer
 *   SOCKS  hello ── answer [ password ── answer ] name ── answer
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "wire/socks5_client.h"

enum { GREETED = 1, SHOWN, ASKED }; /* via_step */

static int say(struct flow *f, const void *words, size_t n, unsigned step)
{
	f->via_step = step;
	return send(f->side[DOWN].fd, words, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static int ask_http(struct flow *f)
{
	const struct via *v = &f->g->via;
	char words[2048];
	int n = snprintf(words, sizeof words, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 f->name, f->port, f->name, f->port,
			 v->auth_len ? "Proxy-Authorization: " : "", v->auth_len ? v->auth : "",
			 v->auth_len ? "\r\n" : "");

	return n < (int)sizeof words ? say(f, words, (size_t)n, ASKED) : -1;
}

static int ask_socks(struct flow *f)
{
	uint8_t words[SOCKS_ASK];

	return say(f, words, socks_ask(f->name, f->port, words), ASKED);
}

static int greet_socks(struct flow *f)
{
	uint8_t words[SOCKS_HELLO];

	return say(f, words, socks_hello(f->g->via.auth_len > 0, words), GREETED);
}

void flow_via_greet(struct flow *f)
{
	f->state = FLOW_VIA;
	flow_deadline(f, FLOW_VIA_MS);
	if ((f->g->via.socks ? greet_socks(f) : ask_http(f)) < 0)
		flow_fail(f, EPIPE);
	else
		flow_watch(f);
}

static void on_resolved(struct resolve_wait *w, const struct resolve_answer *a)
{
	struct flow *f = container_of(w, struct flow, wait);

	if (a->status < 0 || flow_dial_start(f, &a->addrs[0], f->g->via.port) < 0)
		flow_fail(f, a->status < 0 ? -a->status : f->dial_err);
}

/* The proxy is the host's own choice, so its address is not subject to the policy. */
void flow_via_dial(struct flow *f)
{
	const struct via *v = &f->g->via;

	if (f->at > 0) {
		flow_fail(f, f->dial_err);
		return;
	}
	if (!f->counted && !flow_dial_count(f))
		return;
	if (!v->host.ip.len)
		flow_resolve(f, v->host.name, on_resolved);
	else if (flow_dial_start(f, &v->host.ip, v->port) < 0)
		flow_fail(f, f->dial_err);
}

/* Bytes of the proxy's answer, 0 for more, -errno. */
static int64_t read_http(struct str in)
{
	static struct http_head head;
	int64_t n = http_response_parse(in, STR("CONNECT"), &head);

	if (n <= 0)
		return n < 0 ? -EBADMSG : 0;
	return head.status == 407 ? -EACCES : head.status / 100 != 2 ? -ECONNREFUSED : n;
}

/* *ret_next: what is to be said after it, or 0. */
static int64_t read_socks(struct flow *f, struct str in, unsigned *ret_next)
{
	bool wants_password = false;
	int64_t n;

	if (f->via_step == ASKED)
		return socks_ask_answer(in);
	*ret_next = ASKED;
	if (f->via_step == SHOWN)
		return socks_password_answer(in);
	n = socks_hello_answer(in, &wants_password);
	if (n > 0 && wants_password && !f->g->via.auth_len)
		return -EACCES;
	*ret_next = wants_password ? SHOWN : ASKED;
	return n;
}

void flow_via(struct flow *f)
{
	struct via *v = &f->g->via;
	struct side *s = &f->side[DOWN];
	unsigned next = 0;
	struct str in;
	int64_t n;
	int r = flow_peek(s, &in);

	if (r == -EAGAIN)
		return;
	n = r < 0 || s->eof ? -ECONNREFUSED : v->socks ? read_socks(f, in, &next) : read_http(in);
	if (n < 0) {
		flow_fail(f, (int)-n);
		return;
	}
	if (n == 0) {
		flow_await_more(s, in.n);
		return;
	}
	flow_discard(s, (size_t)n);
	flow_await_more(s, 0);
	if (next == 0)
		flow_opened(f);
	else if ((next == SHOWN ? say(f, v->auth, v->auth_len, SHOWN) : ask_socks(f)) < 0)
		flow_fail(f, EPIPE);
}
