/* SPDX-License-Identifier: Apache-2.0 */
/* Accept connections of the sandbox: find their destination and the call that owns them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/netplan.h"
#include "gateway/flow.h"

enum {
	ORIGINAL_DST = 80,
	REST_MS = 20,
	SEARCHES_A_S = 100, /* each lists all sockets of the sandbox, which can be many */
};

struct sockdiag_owner whose(struct gateway *g, int protocol, const struct target *from,
			    const struct target *to)
{
	uint8_t family = from->ip.len == 4 ? AF_INET : AF_INET6;
	struct sockdiag_end local = { .family = family, .port = from->port };
	struct sockdiag_end remote = { .family = family, .port = to->port };
	struct sockdiag_owner o = { 0 };
	uint64_t now;

	memcpy(local.addr, from->ip.b, from->ip.len);
	memcpy(remote.addr, to->ip.b, to->ip.len);

	if (sockdiag_find(g->fds[SOCK_DIAG], protocol, &local, &remote, &o) == 0)
		return o;
	now = clock_mono_ns();
	if (bucket_ready(&g->searches, now) < 1)
		return (struct sockdiag_owner){ 0 };
	bucket_take(&g->searches, 1, now);
	if (sockdiag_find_like(g->fds[SOCK_DIAG], protocol, &local, &remote, &o) < 0)
		return (struct sockdiag_owner){ 0 };
	return o;
}

struct ip gateway_ip(int family)
{
	struct ip ip = { .len = family == AF_INET ? 4 : 16 };

	if (family == AF_INET)
		memcpy(ip.b, &(uint32_t){ htonl(NETPLAN_GATEWAY4) }, 4);
	else
		memcpy(ip.b, netplan_gateway6, 16);
	return ip;
}

static void watch_inlets(struct gateway *g, bool on)
{
	for (int i = 0; i < 2; i++)
		if (g->tcp[i].io.fn)
			(void)loop_mod(&g->loop, &g->tcp[i].io, on ? EPOLLIN : 0);
}

/* The destination that the client asked for, before the redirect. */
static bool original(int fd, int family, struct target *ret)
{
	struct sockaddr_storage was = { 0 };
	socklen_t n = sizeof was;

	if (getsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6, ORIGINAL_DST, &was, &n) < 0)
		return false;
	ret->ip = ip_of_sockaddr((void *)&was, &ret->port);
	return ret->ip.len > 0;
}

static void on_rested(struct loop_timer *t)
{
	struct gateway *g = container_of(t, struct gateway, rest);

	if (!g->held)
		accept_hold(g, false);
}

/* Accepting failed, and epoll would report the socket again at once: stop listening for a while. */
static void rest(struct gateway *g)
{
	watch_inlets(g, false);
	loop_timer_set(&g->loop, &g->rest, REST_MS * NS_PER_MS, on_rested);
}

/* One per turn: a failing accept(2) costs as much as a successful one, and epoll reports more. */
static void on_connection(struct loop_io *io, uint32_t events)
{
	struct inlet *in = container_of(io, struct inlet, io);
	struct sockaddr_storage peer;
	socklen_t n = sizeof peer;
	struct target from, to;
	int fd;

	(void)events;
	if (in->g->held)
		return;
	fd = accept4(io->fd, (void *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			rest(in->g);
		return;
	}
	from.ip = ip_of_sockaddr((void *)&peer, &from.port);
	if (original(fd, in->family, &to))
		flow_new(in->g, fd, &from, &to);
	else
		(void)close(fd);
}

void accept_hold(struct gateway *g, bool hold)
{
	g->held = hold;
	watch_inlets(g, !hold);
}

int accept_begin(struct gateway *g)
{
	int r = 0, on = 1;

	bucket_init(&g->searches, SEARCHES_A_S, SEARCHES_A_S, clock_mono_ns());
	for (int i = 0; i < 2 && r == 0; i++) {
		int fd = g->fds[i ? SOCK_TCP6 : SOCK_TCP4];

		g->tcp[i] = (struct inlet){ .g = g, .family = i ? AF_INET6 : AF_INET };
		if (fd < 0)
			continue;
		/* Accepted sockets inherit it. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		r = loop_add(&g->loop, &g->tcp[i].io, fd, EPOLLIN, on_connection);
		g->tcp[i].io.first = true;
	}
	return r;
}
