/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Through the host's proxy: it is dialled, asked for the name, and its answer awaited. The front
 * gets the socket after the proxy's yes, so that it can ask the proxy for nothing else.
 *
 *   HTTP   CONNECT -- answer
 *   SOCKS  hello -- answer [ password -- answer ] name -- answer
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "gateway/dialer.h"
#include "wire/http1.h"
#include "wire/socks5_client.h"

enum { GREETED = 1, SHOWN, ASKED }; /* via_step */
enum { SCRATCH = LIMIT_HTTP_HEAD + 1 };

static int say(struct dialling *a, const void *words, size_t n, unsigned step)
{
	a->via_step = step;
	return send(a->fd, words, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static int ask_http(struct dialling *a)
{
	const struct via *v = &a->d->via;
	const struct dial_ask *q = &a->ask;
	char words[2048];
	int n = snprintf(words, sizeof words, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 q->name, q->port, q->name, q->port,
			 v->auth_len ? "Proxy-Authorization: " : "", v->auth_len ? v->auth : "",
			 v->auth_len ? "\r\n" : "");

	return n < (int)sizeof words ? say(a, words, (size_t)n, ASKED) : -1;
}

static int ask_socks(struct dialling *a)
{
	uint8_t words[SOCKS_ASK];

	return say(a, words, socks_ask(a->ask.name, a->ask.port, words), ASKED);
}

static int greet_socks(struct dialling *a)
{
	uint8_t words[SOCKS_HELLO];

	return say(a, words, socks_hello(a->d->via.auth_len > 0, words), GREETED);
}

/* Wake only when there is more than this. */
static void await_more(struct dialling *a, size_t than)
{
	int low = (int)than + 1;

	if (a->seen == than)
		return;
	a->seen = than;
	(void)setsockopt(a->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
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
static int64_t read_socks(struct dialling *a, struct str in, unsigned *ret_next)
{
	bool wants_password = false;
	int64_t n;

	if (a->via_step == ASKED)
		return socks_ask_answer(in);
	*ret_next = ASKED;
	if (a->via_step == SHOWN)
		return socks_password_answer(in);
	n = socks_hello_answer(in, &wants_password);
	if (n > 0 && wants_password && !a->d->via.auth_len)
		return -EACCES;
	*ret_next = wants_password ? SHOWN : ASKED;
	return n;
}

/* Take what was peeked at: what follows it is the server's, for the client. */
static int discard(struct dialling *a, size_t n)
{
	while (n > 0) {
		ssize_t k = recv(a->fd, NULL, n, MSG_TRUNC | MSG_DONTWAIT);

		if (k <= 0)
			return -1;
		n -= (size_t)k;
	}
	await_more(a, 0);
	return 0;
}

static void go_on(struct dialling *a, size_t n, unsigned next)
{
	const struct via *v = &a->d->via;

	if (discard(a, n) < 0)
		dialling_fail(a, ECONNREFUSED);
	else if (next == 0)
		dialling_give(a);
	else if ((next == SHOWN ? say(a, v->auth, v->auth_len, SHOWN) : ask_socks(a)) < 0)
		dialling_fail(a, EPIPE);
}

static void on_proxy(struct loop_io *io, uint32_t events)
{
	struct dialling *a = container_of(io, struct dialling, io);
	static char scratch[SCRATCH];
	ssize_t got = recv(a->fd, scratch, sizeof scratch, MSG_PEEK | MSG_DONTWAIT);
	struct str in = { scratch, got > 0 ? (size_t)got : 0 };
	unsigned next = 0;
	int64_t n;

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	n = got <= 0 ? -ECONNREFUSED : a->d->via.socks ? read_socks(a, in, &next) : read_http(in);
	/* A proxy that has closed, or fills the buffer with less than an answer, says no more. */
	if (n == 0 && (in.n == sizeof scratch || events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		n = -ECONNREFUSED;
	if (n < 0)
		dialling_fail(a, (int)-n);
	else if (n == 0)
		await_more(a, in.n);
	else
		go_on(a, (size_t)n, next);
}

void dialling_via_greet(struct dialling *a)
{
	struct loop *l = &a->d->loop;

	loop_del(l, &a->io);
	dialling_deadline(a, DIALLING_VIA_MS);
	if ((a->d->via.socks ? greet_socks(a) : ask_http(a)) < 0 ||
	    loop_add(l, &a->io, a->fd, EPOLLIN | EPOLLRDHUP, on_proxy) < 0)
		dialling_fail(a, EPIPE);
}

static void on_proxy_resolved(struct resolve_wait *w, const struct resolve_answer *answer)
{
	struct dialling *a = container_of(w, struct dialling, wait);

	if (answer->status < 0)
		dialling_fail(a, -answer->status);
	else if (dialling_start(a, &answer->addrs[0], a->d->via.port) < 0)
		dialling_fail(a, a->err);
}

/* The proxy is the host's own choice, so its address is not subject to the policy. */
void dialling_via(struct dialling *a)
{
	const struct via *v = &a->d->via;

	if (v->host.ip.len) {
		if (dialling_start(a, &v->host.ip, v->port) < 0)
			dialling_fail(a, a->err);
		return;
	}
	if (resolve(a->d->resolver, v->host.name, &a->wait, on_proxy_resolved) < 0)
		dialling_fail(a, EBUSY);
}
