/* SPDX-License-Identifier: Apache-2.0 */
/* New connections: where they wanted to go, and whose they are. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"

enum { BATCH = 64, ORIGINAL_DST = 80 };

struct sockdiag_owner whose(struct gateway *g, int protocol, const struct sockaddr *peer,
			    const struct ip *dst, uint16_t port)
{
	struct sockdiag_end local = { .family = (uint8_t)peer->sa_family };
	struct sockdiag_end remote = { .family = local.family, .port = port };
	struct sockdiag_owner o = { 0 };
	struct ip from = ip_of_sockaddr(peer, &local.port);

	memcpy(local.addr, from.b, from.len);
	memcpy(remote.addr, dst->b, dst->len);
	if (sockdiag_find(g->fds[SOCK_DIAG], protocol, &local, &remote, &o) < 0)
		return (struct sockdiag_owner){ 0 };
	return o;
}

/* Where the client meant to connect to, before the rules led it here. */
static struct ip original(int fd, int family, uint16_t *ret_port)
{
	struct sockaddr_storage was = { 0 };
	socklen_t n = sizeof was;

	if (getsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6, ORIGINAL_DST, &was, &n) < 0)
		return (struct ip){ .len = 0 };
	return ip_of_sockaddr((void *)&was, ret_port);
}

static void on_connection(struct loop_io *io, uint32_t events)
{
	struct inlet *in = container_of(io, struct inlet, io);

	(void)events;
	for (int i = 0; i < BATCH && !in->g->held; i++) {
		struct sockaddr_storage peer;
		socklen_t n = sizeof peer;
		int fd = accept4(io->fd, (void *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		uint16_t port = 0;
		struct ip dst;
		int on = 1;

		if (fd < 0)
			return;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		dst = original(fd, in->family, &port);
		if (dst.len == 0)
			(void)close(fd);
		else
			flow_new(in->g, fd, (void *)&peer, &dst, port);
	}
}

void accept_hold(struct gateway *g, bool hold)
{
	g->held = hold;
	for (int i = 0; i < 2; i++)
		if (g->tcp[i].io.fn)
			(void)loop_mod(&g->loop, &g->tcp[i].io, hold ? 0 : EPOLLIN);
}

int accept_begin(struct gateway *g)
{
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		int fd = g->fds[i ? SOCK_TCP6 : SOCK_TCP4];

		g->tcp[i] = (struct inlet){ .g = g, .family = i ? AF_INET6 : AF_INET };
		if (fd >= 0)
			r = loop_add(&g->loop, &g->tcp[i].io, fd, EPOLLIN, on_connection);
	}
	return r;
}
