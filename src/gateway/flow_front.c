/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the gateway itself: DNS over TCP, and the HTTP and SOCKS proxies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "wire/dns.h"
#include "wire/socks5.h"

static int say(struct flow *f, const void *words, size_t n)
{
	return send(f->side[UP].fd, words, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

/* The target is known: treat it like a redirected connection. */
static void go_to(struct flow *f, const struct host *h, uint16_t port, size_t used)
{
	flow_discard(&f->side[UP], used);
	flow_await_more(&f->side[UP], 0);
	if (h->ip.len)
		f->dst = h->ip;
	else
		f->name = strdup(h->name);
	f->port = port;
	f->state = FLOW_LOOK;
	flow_deadline(f, 0);
	if (!h->ip.len && !f->name)
		flow_end(f, "out of memory", true);
	else
		flow_step(f);
}

static void on_dns_answer(void *ctx, struct str answer)
{
	struct flow *f = ctx;
	uint8_t head[2] = { (uint8_t)(answer.n >> 8), (uint8_t)answer.n };

	f->dns = NULL;
	f->dns_waits = false;
	(void)say(f, head, sizeof head);
	(void)say(f, answer.p, answer.n);
	flow_watch(f);
}

static void front_dns(struct flow *f, struct str in)
{
	struct str msg;
	size_t n = dns_tcp_next(in, &msg);

	if (n == 0) {
		if (f->side[UP].hup)
			flow_end(f, "closed", false);
		else
			flow_await_more(&f->side[UP], in.n);
		return;
	}
	f->dns_waits = true;
	if (dns_ask(f->g, msg, true, flow_owner(f), on_dns_answer, f, &f->dns) < 0) {
		flow_end(f, "malformed", true);
		return;
	}
	flow_discard(&f->side[UP], n);
	flow_await_more(&f->side[UP], 0);
	flow_watch(f);
}

static void front_socks(struct flow *f, struct str in)
{
	enum socks_rep rep = SOCKS_FAILED;
	uint8_t out[SOCKS_REPLY];
	struct socks_request q;
	bool ok = false;
	int64_t n = f->greeted ? socks_request_parse(in, &q, &rep) : socks_greeting_parse(in, &ok);

	if (n == 0 && !f->side[UP].hup) {
		flow_await_more(&f->side[UP], in.n);
		return;
	}
	if (n <= 0) {
		const struct ip none = { .len = 4 };
		size_t k = f->greeted ? socks_reply(rep, &none, 0, out) : 0;

		flow_last_words(f, (struct str){ (char *)out, k });
		return;
	}
	if (f->greeted) {
		f->greeted = false;
		go_to(f, &q.host, q.port, (size_t)n);
		return;
	}
	socks_method_reply(ok, out);
	flow_discard(&f->side[UP], (size_t)n);
	flow_await_more(&f->side[UP], 0);
	if (!ok || say(f, out, SOCKS_METHOD_REPLY) < 0)
		flow_end(f, "refused", !ok);
	else
		f->greeted = true;
}

static void front_http(struct flow *f, struct str in)
{
	static struct http_head head;
	int64_t n = http_request_parse(in, &head);

	if (n == 0 && !f->side[UP].hup) {
		flow_await_more(&f->side[UP], in.n);
		return;
	}
	if (n <= 0 || !head.has_host || (!head.is_connect && head.form != HTTP_ABSOLUTE)) {
		flow_refuse_http(f, n < 0 ? http_error_status(n) : 400,
				 n < 0 ? head.why : "a proxy needs CONNECT or a whole URL");
		return;
	}
	if (head.is_connect) {
		go_to(f, &head.host, head.port, (size_t)n);
		return;
	}
	f->http = calloc(1, sizeof *f->http);
	if (!f->http) {
		flow_end(f, "out of memory", true);
		return;
	}
	f->http->absolute = true;
	f->looked = true;
	f->proto = PROTO_HTTP;
	go_to(f, &head.host, head.port ? head.port : 80, 0);
}

void flow_front(struct flow *f)
{
	struct str in;
	int r = flow_peek(&f->side[UP], &in);

	if (r == -EAGAIN)
		return;
	if (r < 0) {
		flow_end(f, "reset by the client", true);
		return;
	}
	if (f->front == FRONT_DNS)
		front_dns(f, in);
	else if (in.n == 0 && f->side[UP].eof)
		flow_end(f, "closed without data", false);
	else if (f->front == FRONT_SOCKS)
		front_socks(f, in);
	else
		front_http(f, in);
}

int flow_front_opened(struct flow *f)
{
	static const char open[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	enum flow_front front = f->front;
	const struct ip none = { .len = 4 };
	uint8_t out[SOCKS_REPLY];

	if (f->http && f->http->absolute)
		return 0;
	f->front = FRONT_NONE;
	if (front == FRONT_HTTP)
		return say(f, open, sizeof open - 1);
	return front == FRONT_SOCKS ? say(f, out, socks_reply(SOCKS_OK, &none, 0, out)) : 0;
}
