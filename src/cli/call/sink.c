/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

/* Opens the same pipe or terminal again, to get an own description that can be non-blocking. */
static int open_anew(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int sink_init(struct sink *s, struct loop *l, int fd, void (*emptied)(struct sink *))
{
	struct stat st;
	int anew;

	*s = (struct sink){
		.loop = l,
		.fd = fd,
		.io = { .fd = FD_NONE },
		.rest = BUF_INIT(LIMIT_CONN_OUT),
		.emptied = emptied,
	};
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	s->socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return 0;
	anew = open_anew(fd);
	if (anew >= 0) {
		s->fd = anew;
		s->own = true;
	}
	return 0;
}

void sink_done(struct sink *s)
{
	loop_del(s->loop, &s->io);
	if (s->own)
		fd_close(&s->fd);
	buf_done(&s->rest);
}

static ssize_t write_some(const struct sink *s, const char *p, size_t n)
{
	ssize_t w;

	do {
		w = s->socket ? send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL) : write(s->fd, p, n);
	} while (w < 0 && errno == EINTR);
	return w < 0 ? -errno : w;
}

/* The number of bytes written before the descriptor would have blocked. */
static ssize_t write_now(const struct sink *s, struct str data)
{
	size_t done = 0;

	while (done < data.n) {
		ssize_t w = write_some(s, data.p + done, data.n - done);

		if (w == -EAGAIN)
			break;
		if (w < 0)
			return w;
		done += (size_t)w;
	}
	return (ssize_t)done;
}

static void break_off(struct sink *s, ssize_t r)
{
	s->broken = true;
	s->error = (int)-r;
}

static void on_room(struct loop_io *io, uint32_t events)
{
	struct sink *s = container_of(io, struct sink, io);
	ssize_t n = write_now(s, buf_str(&s->rest));

	(void)events;
	if (n < 0) {
		break_off(s, n);
		n = (ssize_t)s->rest.len;
	}
	buf_shift(&s->rest, (size_t)n);
	if (s->rest.len)
		return;
	loop_del(s->loop, &s->io);
	s->emptied(s);
}

int sink_write(struct sink *s, struct str data)
{
	ssize_t n = 0;
	int r;

	if (s->fd < 0 || s->broken)
		return s->broken ? -EPIPE : 0;
	if (s->rest.len == 0)
		n = write_now(s, data);
	if (n < 0) {
		break_off(s, n);
		return (int)n;
	}
	if ((size_t)n == data.n)
		return 0;
	r = buf_add(&s->rest, data.p + n, data.n - (size_t)n);
	if (r == 0 && s->io.fd < 0)
		r = loop_add(s->loop, &s->io, s->fd, EPOLLOUT, on_room);
	return r;
}

int sink_flush(struct sink *s)
{
	while (s->rest.len && !s->broken) {
		struct pollfd p = { .fd = s->fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		n = write_now(s, buf_str(&s->rest));
		if (n < 0) {
			break_off(s, n);
			return (int)n;
		}
		buf_shift(&s->rest, (size_t)n);
	}
	return 0;
}
