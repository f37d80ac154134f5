/* SPDX-License-Identifier: Apache-2.0 */
#include "init/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { ADDRESSES = 2 };

struct dial {
	struct loop_io io;
	struct loop *loop;
	int fd;
	int address;	 /* index of the address being tried */
	int first_error; /* -errno */
	uint16_t port;
	uint32_t chan;
	void (*done)(uint32_t chan, int fd);
};

static socklen_t address_of(int number, uint16_t port, struct sockaddr_storage *ret)
{
	*ret = (struct sockaddr_storage){ 0 };
	if (number == 0) {
		*(struct sockaddr_in *)ret =
			(struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_port = htons(port),
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		return sizeof(struct sockaddr_in);
	}
	*(struct sockaddr_in6 *)ret = (struct sockaddr_in6){ .sin6_family = AF_INET6,
							     .sin6_port = htons(port),
							     .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	return sizeof(struct sockaddr_in6);
}

static void dial_end(struct dial *d, int fd)
{
	d->done(d->chan, fd);
	free(d);
}

static void on_connected(struct loop_io *io, uint32_t events);

/* 0: connecting; or -errno. */
static int begin(struct dial *d)
{
	struct sockaddr_storage to;
	socklen_t size = address_of(d->address, d->port, &to);
	int r = 0, on = 1;

	d->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return -errno;
	/* Otherwise small alternating writes, as from a debugger, would delay each other. */
	(void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(d->fd, (const struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
		r = -errno;
	if (r == 0)
		r = loop_add(d->loop, &d->io, d->fd, EPOLLOUT, on_connected);
	if (r < 0)
		fd_close(&d->fd);
	return r;
}

/* Try the next address after an error. */
static void begin_next(struct dial *d, int error)
{
	for (;;) {
		if (!d->first_error)
			d->first_error = error;
		if (++d->address == ADDRESSES) {
			dial_end(d, d->first_error);
			return;
		}
		error = begin(d);
		if (error == 0)
			return;
	}
}

static void on_connected(struct loop_io *io, uint32_t events)
{
	struct dial *d = container_of(io, struct dial, io);
	socklen_t n = sizeof(int);
	int error = 0;

	(void)events;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	loop_del(d->loop, &d->io);
	if (!error) {
		dial_end(d, TAKE_FD(d->fd));
		return;
	}
	fd_close(&d->fd);
	begin_next(d, -error);
}

void dial_inside(struct loop *l, uint16_t port, uint32_t chan, void (*done)(uint32_t chan, int fd))
{
	struct dial *d = calloc(1, sizeof *d);
	int r;

	if (!d) {
		done(chan, -ENOMEM);
		return;
	}
	*d = (struct dial){
		.io.fd = FD_NONE, .loop = l, .fd = FD_NONE, .port = port, .chan = chan, .done = done
	};
	r = begin(d);
	if (r < 0)
		begin_next(d, r);
}
