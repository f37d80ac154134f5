/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "wire/proto.h"

enum { READS_PER_TURN = 4, READ_MOST = 16 * 1024 };

void channel_init(struct channel *c, struct loop *l, struct conn *conn, uint32_t id,
		  uint8_t credit_type, void (*moved)(struct channel *))
{
	*c = (struct channel){ .loop = l,
			       .conn = conn,
			       .id = id,
			       .credit_type = credit_type,
			       .credit = LIMIT_CHANNEL,
			       .moved = moved };
	for (int i = 0; i < CHANNEL_ENDS; i++) {
		c->source[i] = (struct channel_source){ .channel = c, .fd = FD_NONE };
		c->sink[i] = (struct channel_sink){ .channel = c,
						    .fd = FD_NONE,
						    .pending = BUF_INIT(LIMIT_CHANNEL) };
	}
}

static void source_close(struct channel_source *s)
{
	loop_del(s->channel->loop, &s->io);
	fd_close(&s->fd);
}

static void sink_close(struct channel_sink *s)
{
	loop_del(s->channel->loop, &s->io);
	if (s->fd >= 0) /* a socket's source may still have something to read */
		(void)shutdown(s->fd, SHUT_WR);
	fd_close(&s->fd);
	buf_done(&s->pending);
}

void channel_done(struct channel *c)
{
	for (int i = 0; i < CHANNEL_ENDS && c->loop; i++) {
		source_close(&c->source[i]);
		sink_close(&c->sink[i]);
	}
	c->loop = NULL;
}

static bool may_send(const struct channel *c)
{
	return c->drops || (c->credit && conn_backlog(c->conn) < LIMIT_CONN_HIGH);
}

/* A pipe without a writer is always ready: remove a waiting source from the loop. */
static void source_wait(struct channel_source *s)
{
	loop_del(s->channel->loop, &s->io);
	s->waits = true;
}

/* Returns the number of bytes of one read, 0 at the end, or -errno. */
static ssize_t source_read(struct channel_source *s)
{
	struct channel *c = s->channel;
	size_t most = c->drops || c->credit > READ_MOST ? READ_MOST : (size_t)c->credit;
	char dropped[READ_MOST];
	ssize_t n;

	if (c->drops) {
		n = read(s->fd, dropped, sizeof dropped);
		return n < 0 ? -errno : n;
	}
	n = conn_send_read(c->conn, s->type, c->id, s->fd, most);
	if (n > 0)
		c->credit -= (uint64_t)n;
	return n;
}

/* True if there is nothing more to read now. */
static bool source_pump(struct channel_source *s)
{
	for (int i = 0; i < READS_PER_TURN && s->fd >= 0; i++) {
		ssize_t n;

		if (!may_send(s->channel)) {
			source_wait(s);
			return false;
		}
		n = source_read(s);
		if (n == -EAGAIN)
			return true;
		if (n > 0 || n == -EINTR)
			continue;
		source_close(s); /* the end, or EIO of a terminal that everyone closed */
		if (s->end && !s->channel->drops)
			(void)conn_send(s->channel->conn, s->end, s->channel->id, STR_NONE);
	}
	return s->fd < 0;
}

static void on_source(struct loop_io *io, uint32_t events)
{
	struct channel_source *s = container_of(io, struct channel_source, io);

	(void)events;
	(void)source_pump(s);
	if (s->channel->moved)
		s->channel->moved(s->channel);
}

static int source_watch(struct channel_source *s)
{
	s->waits = false;
	return loop_add(s->channel->loop, &s->io, s->fd, EPOLLIN, on_source);
}

int channel_source(struct channel *c, int i, int fd, uint8_t type, uint8_t end)
{
	struct channel_source *s = &c->source[i];
	int r;

	*s = (struct channel_source){ .channel = c, .fd = fd, .type = type, .end = end };
	r = io_set_nonblock(fd, true);
	return r < 0 ? r : source_watch(s);
}

void channel_resume(struct channel *c)
{
	for (int i = 0; i < CHANNEL_ENDS; i++) {
		struct channel_source *s = &c->source[i];

		/* A source that can no longer be watched counts as ended. */
		if (s->fd >= 0 && s->waits && may_send(c) && source_watch(s) < 0)
			source_close(s);
	}
}

bool channel_is_drained(struct channel *c)
{
	bool all = true;

	for (int i = 0; i < CHANNEL_ENDS; i++)
		all &= c->source[i].fd < 0 || source_pump(&c->source[i]);
	return all;
}

bool channel_is_pending(const struct channel *c)
{
	return c->sink[0].pending.len || c->sink[1].pending.len;
}

bool channel_is_over(const struct channel *c)
{
	bool over = true;

	for (int i = 0; i < CHANNEL_ENDS; i++)
		over &= c->source[i].fd < 0 && c->sink[i].fd < 0;
	return over;
}

static void give_credit(struct channel *c, size_t n)
{
	c->owed -= n;
	if (n)
		(void)CONN_SAY(c->conn, c->credit_type, c->id, { TAG_BYTES, n, NULL });
}

/* The reader is gone: accept further bytes and drop them. */
static void sink_give_up(struct channel_sink *s)
{
	give_credit(s->channel, s->pending.len);
	sink_close(s);
}

static void sink_pump(struct channel_sink *s)
{
	while (s->fd >= 0 && s->pending.len) {
		ssize_t n = write(s->fd, s->pending.data, s->pending.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			sink_give_up(s);
			return;
		}
		buf_shift(&s->pending, (size_t)n);
		give_credit(s->channel, (size_t)n);
	}
	if (s->fd >= 0 && !s->pending.len && s->ending)
		sink_close(s);
	else if (s->fd >= 0)
		(void)loop_mod(s->channel->loop, &s->io, s->pending.len ? EPOLLOUT : 0);
}

static void on_sink(struct loop_io *io, uint32_t events)
{
	struct channel_sink *s = container_of(io, struct channel_sink, io);

	if (events & (EPOLLERR | EPOLLHUP))
		sink_give_up(s);
	else
		sink_pump(s);
	if (!s->pending.len && s->channel->moved)
		s->channel->moved(s->channel);
}

int channel_sink(struct channel *c, int i, int fd, uint8_t type, uint8_t end)
{
	struct channel_sink *s = &c->sink[i];
	int r;

	s->fd = fd;
	s->type = type;
	s->end = end;
	r = io_set_nonblock(fd, true);
	return r < 0 ? r : loop_add(c->loop, &s->io, fd, 0, on_sink);
}

static int take_data(struct channel_sink *s, struct str data)
{
	if (data.n > LIMIT_CHANNEL - s->channel->owed)
		return -EPROTO;
	s->channel->owed += data.n;
	if (s->fd < 0) {
		give_credit(s->channel, data.n);
		return 0;
	}
	if (buf_add_str(&s->pending, data) < 0)
		return -EPROTO;
	sink_pump(s);
	return 0;
}

static int take_credit(struct channel *c, const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t n;

	if (field_next(&body, &field) != 1 || field.tag != TAG_BYTES || field_u64(field, &n) < 0 ||
	    n > LIMIT_CHANNEL - c->credit)
		return -EPROTO;
	c->credit += n;
	channel_resume(c);
	return 0;
}

int channel_frame(struct channel *c, const struct frame *f)
{
	if (f->type == c->credit_type)
		return take_credit(c, f);
	for (int i = 0; i < CHANNEL_ENDS; i++) {
		struct channel_sink *s = &c->sink[i];

		if (s->type && f->type == s->type)
			return take_data(s, f->body);
		if (s->end && f->type == s->end) {
			s->ending = true;
			sink_pump(s);
			return 0;
		}
	}
	return 1;
}

void channel_finish(struct channel *c)
{
	for (int i = 0; i < CHANNEL_ENDS; i++) {
		c->sink[i].ending = true;
		sink_pump(&c->sink[i]);
	}
}

void channel_drop(struct channel *c)
{
	c->drops = true;
	channel_resume(c);
}
