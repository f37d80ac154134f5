/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/io.h"
#include "http/parts.h"

enum {
	ACCEPTS = 64, /* per turn */
	REST_MS = 100,
	USER_TIMEOUT_MS = 120 * 1000,
	KEEPALIVE_S = 30,
};

/* Accepted sockets inherit these (tcp(7)), so they cost nothing per connection. */
static void set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_S },
	};

	/* A unix socket has none of them. */
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
				 sizeof options[i].value);
}

static void listen_rest(struct http_server *s)
{
	for (struct http_listener *l = s->listeners; l; l = l->next)
		(void)loop_mod(s->loop, &l->io, 0);
	s->resting = true;
}

void http_server_resume(struct http_server *s)
{
	if (!s->resting || s->rest.at_ns || !http_server_may_accept(s))
		return;
	for (struct http_listener *l = s->listeners; l; l = l->next)
		(void)loop_mod(s->loop, &l->io, EPOLLIN);
	s->resting = false;
}

static void on_rest(struct loop_timer *t)
{
	http_server_resume(container_of(t, struct http_server, rest));
}

/* No descriptor is free: use the spare one to refuse one client, then rest. */
static void refuse_one(struct http_listener *l)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
				   "Retry-After: 1\r\nConnection: close\r\n\r\n";
	struct http_server *s = l->server;
	int fd;

	fd_close(&s->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		(void)!send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
		s->counters.refused[HTTP_REFUSED_FILES]++;
	}
	fd_close(&fd);
	s->spare_fd = http_server_spare(s);
	listen_rest(s);
	loop_timer_set(s->loop, &s->rest, REST_MS * NS_PER_MS, on_rest);
}

/* Nothing is accepted for now. If memory is short, idle connections give theirs back. */
static void listen_full(struct http_server *s)
{
	if (s->memory > s->limits.memory) {
		s->counters.refused[HTTP_REFUSED_MEMORY]++;
		while (s->idle_first)
			http_conn_close(s->idle_first, HTTP_END_GONE);
	}
	listen_rest(s);
}

static void on_listen(struct loop_io *io, uint32_t events)
{
	struct http_listener *l = container_of(io, struct http_listener, io);
	struct http_server *s = l->server;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		int fd;

		if (!http_server_may_accept(s)) {
			listen_full(s);
			return;
		}
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			refuse_one(l);
			return;
		}
		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return;
		if (fd >= 0)
			(void)http_server_adopt(s, fd, l->maker);
	}
}

int http_listen_add(struct http_server *s, struct http_listener *l, int fd,
		    const struct http_filter_maker *maker)
{
	int r = io_set_nonblock(fd, true);

	*l = (struct http_listener){ .server = s, .fd = fd, .maker = maker };
	if (r == 0)
		r = loop_add(s->loop, &l->io, fd, s->resting ? 0 : EPOLLIN, on_listen);
	if (r < 0) {
		fd_close(&l->fd);
		return r;
	}
	set_options(fd);
	l->next = s->listeners;
	s->listeners = l;
	return 0;
}

void http_listen_remove(struct http_listener *l)
{
	struct http_listener **at = &l->server->listeners;

	while (*at && *at != l)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = l->next;
	loop_del(l->server->loop, &l->io);
	fd_close(&l->fd);
}
