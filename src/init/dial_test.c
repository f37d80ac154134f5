/* SPDX-License-Identifier: Apache-2.0 */
#include "init/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t.h"

static struct loop loop;
static bool over;
static int got;

static void on_dialed(uint32_t chan, int fd)
{
	CHECK(chan == 7 && !over);
	got = fd;
	over = true;
}

static int dial(uint16_t port)
{
	over = false;
	CHECK(loop_init(&loop) == 0);
	dial_inside(&loop, port, 7, on_dialed);
	CHECK(loop_run_until(&loop, &over) == 0 && over);
	loop_done(&loop);
	return got;
}

/* A server on one address; *ret_port: its port. FD_NONE: this host lacks the address. */
static int serve(int family, uint16_t *ret_port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&four : (void *)&six;
	socklen_t n = family == AF_INET ? sizeof four : sizeof six;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, at, n) < 0 || listen(fd, 4) < 0) {
		if (fd >= 0)
			(void)close(fd);
		return FD_NONE;
	}
	CHECK(getsockname(fd, at, &n) == 0);
	*ret_port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

static void check_connected(int fd, int server)
{
	int peer, on = 0;
	socklen_t n = sizeof on;
	char c = 0;

	CHECK(fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &n) == 0 && on);
	peer = accept(server, NULL, NULL);
	CHECK(peer >= 0 && write(fd, "x", 1) == 1 && read(peer, &c, 1) == 1 && c == 'x');
	CHECK(close(peer) == 0 && close(fd) == 0);
}

static void a_server_is_reached_without_delay(void)
{
	uint16_t port = 0;
	int server = serve(AF_INET, &port);

	CHECK(server >= 0);
	check_connected(dial(port), server);
	CHECK(close(server) == 0);
}

static void a_server_of_the_new_protocol_only_is_reached(void)
{
	uint16_t port = 0;
	int server = serve(AF_INET6, &port);

	if (server < 0)
		return; /* a host without IPv6 */
	check_connected(dial(port), server);
	CHECK(close(server) == 0);
}

static void a_port_without_a_server_is_refused(void)
{
	uint16_t port = 0;
	int server = serve(AF_INET, &port);

	CHECK(server >= 0 && close(server) == 0);
	CHECK(dial(port) == -ECONNREFUSED);
}

T_MAIN(T(a_server_is_reached_without_delay), T(a_server_of_the_new_protocol_only_is_reached),
       T(a_port_without_a_server_is_refused))
