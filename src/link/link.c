/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "link/decode.h"
#include "link/parts.h"

enum { PING_S = 15, SILENCE_S = 45 };

static struct link_channel **bucket(struct link *l, uint32_t number)
{
	return &l->channels[number % LINK_BUCKETS];
}

static struct link_channel *find(struct link *l, uint32_t number)
{
	struct link_channel *c = *bucket(l, number);

	while (c && c->number != number)
		c = c->next;
	return c;
}

void channel_close(struct link_channel *c)
{
	struct link *l = c->link;

	if (!l)
		return;
	for (struct link_channel **at = bucket(l, c->number); *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	loop_timer_stop(l->loop, &c->deadline);
	l->nchannels--;
	c->link = NULL;
	if (c->gone)
		*c->gone = true;
	c->gone = NULL;
}

void channel_no_deadline(struct link_channel *c)
{
	if (c->link)
		loop_timer_stop(c->link->loop, &c->deadline);
}

static void on_deadline(struct loop_timer *t)
{
	struct link_channel *c = container_of(t, struct link_channel, deadline);
	struct err e = { 0 };

	(void)err_set(&e, ERR_TIMEOUT, "the warden of sandbox '%s' did not answer in time",
		      c->link->id);
	(void)err_code(&e, "warden.timeout", c->link->id);
	if (c->ops->expired)
		c->ops->expired(c);
	channel_close(c);
	c->ops->failed(c, &e);
}

int channel_open(struct link *l, struct link_channel *c, const struct link_channel_ops *ops,
		 uint64_t timeout_ms)
{
	struct link_channel **at;

	if (!l->conn.loop)
		return -ENOTCONN;
	do /* a number is reused only after all others, so a late frame finds no channel */
		l->last_channel++;
	while (l->last_channel == 0 || find(l, l->last_channel));
	at = bucket(l, l->last_channel);
	*c = (struct link_channel){ .link = l, .next = *at, .number = l->last_channel, .ops = ops };
	*at = c;
	l->nchannels++;
	if (timeout_ms)
		loop_timer_set(l->loop, &c->deadline, timeout_ms * NS_PER_MS, on_deadline);
	return 0;
}

/* Report the end to every channel, then to the owner. Each callback may free the link. */
static void tell_closed(struct link *l, const struct err *why)
{
	bool gone = false;

	l->gone = &gone;
	conn_done(&l->conn);
	loop_timer_stop(l->loop, &l->ping);
	for (int b = 0; b < LINK_BUCKETS; b++)
		while (l->channels[b]) {
			struct link_channel *c = l->channels[b];

			channel_close(c);
			c->ops->failed(c, why);
			if (gone)
				return;
		}
	l->gone = NULL;
	if (l->ops && l->ops->closed)
		l->ops->closed(l, why);
}

void link_break(struct link *l, const char *what)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_FAILED, "the warden of sandbox '%s' broke the protocol: %s", l->id,
		      what);
	(void)err_code(&e, "warden.protocol", l->id);
	tell_closed(l, &e);
}

static void on_closed(struct conn *conn, int err)
{
	struct link *l = container_of(conn, struct link, conn);
	struct err e = { 0 };

	if (err == -EBADMSG || err == -EMSGSIZE) {
		link_break(l, "a malformed frame");
		return;
	}
	(void)err_set(&e, ERR_UNAVAILABLE, "the sandbox ended before it answered");
	(void)err_code(&e, "sandbox.gone", l->id);
	tell_closed(l, &e);
}

/* The warden's first frame tells its version: version 2 sends no hello. False: link closed. */
static bool take_version(struct link *l, const struct frame *f)
{
	uint64_t v = f->type == MSG_C_HELLO ? frame_number(f, TAG_VERSION, 0) : PROTO_CLIENT_OLDEST;

	if (v < PROTO_CLIENT_OLDEST || v > PROTO_CLIENT_VERSION) {
		link_break(l, "an unknown version");
		return false;
	}
	l->version = (unsigned)v;
	return true;
}

/* Frames about the sandbox as a whole. */
static void on_sandbox_frame(struct link *l, const struct frame *f)
{
	struct link_ready ready;
	struct err e = { 0 };

	if (f->type == MSG_C_ERROR) {
		(void)frame_error(f, &e);
		tell_closed(l, &e);
	} else if (f->type == MSG_C_READY && l->ops && l->ops->ready) {
		decode_ready(f, &ready);
		l->ops->ready(l, &ready);
	}
}

static void on_frame(struct conn *conn, const struct frame *f, int *fds)
{
	struct link *l = container_of(conn, struct link, conn);
	struct link_channel *c;

	l->heard_ns = clock_mono_ns();
	if (!l->version && !take_version(l, f)) {
		frame_close_fds(f, fds);
		return;
	}
	c = f->chan ? find(l, f->chan) : NULL;
	if (c) {
		c->ops->frame(c, f, fds);
		return;
	}
	frame_close_fds(f, fds);
	if (f->chan == 0)
		on_sandbox_frame(l, f);
}

/* The next channel with a `drained` callback. */
static struct link_channel *next_drained(struct link *l, uint32_t after)
{
	struct link_channel *next = NULL;

	for (int b = 0; b < LINK_BUCKETS; b++)
		for (struct link_channel *c = l->channels[b]; c; c = c->next)
			if (c->ops->drained && c->number > after &&
			    (!next || c->number < next->number))
				next = c;
	return next;
}

/* Callbacks may close any channel, so search for each channel again. */
static void on_drained(struct conn *conn)
{
	struct link *l = container_of(conn, struct link, conn);
	uint32_t last = l->last_channel;
	struct link_channel *c = next_drained(l, 0);
	bool gone = false;

	l->gone = &gone;
	while (c && c->number <= last) {
		uint32_t number = c->number;

		c->ops->drained(c);
		if (gone)
			return;
		c = next_drained(l, number);
	}
	l->gone = NULL;
}

static int say_hello(struct link *l)
{
	size_t at = 0;
	int r = conn_begin(&l->conn, MSG_C_HELLO, 0, &at);

	if (r < 0)
		return r;
	r = field_put_u64(&l->conn.out, TAG_VERSION, PROTO_CLIENT_OLDEST);
	if (r == 0)
		r = field_put_u64(&l->conn.out, TAG_NEWEST, PROTO_CLIENT_VERSION);
	if (r < 0) {
		conn_cancel(&l->conn, at);
		return r;
	}
	return conn_end_later(&l->conn, at); /* together with the first request */
}

int link_adopt(struct loop *loop, struct link_given given, const char *id,
	       const struct link_ops *ops, void *owner, struct link **ret, struct err *e)
{
	static const struct conn_ops conn_ops = { .frame = on_frame,
						  .closed = on_closed,
						  .drained = on_drained };
	struct link *l = calloc(1, sizeof *l);
	int r;

	if (!l) {
		fd_close(&given.fd);
		return err_sys(e, ENOMEM, "connect to sandbox '%s'", id);
	}
	l->loop = loop;
	l->ops = ops;
	l->owner = owner;
	l->version = given.version;
	l->last_channel = given.channel;
	l->heard_ns = clock_mono_ns();
	(void)snprintf(l->id, sizeof l->id, "%s", id);
	r = conn_init(&l->conn, loop, given.fd, &conn_ops); /* closes the descriptor on failure */
	if (r == 0 && !l->version)
		r = say_hello(l);
	if (r < 0) {
		link_free(l);
		return err_sys(e, -r, "connect to sandbox '%s'", id);
	}
	*ret = l;
	return 0;
}

int link_open(struct loop *loop, const struct state *s, const char *id, const struct link_ops *ops,
	      void *owner, struct link **ret, struct err *e)
{
	struct link_given given = { .fd = FD_NONE };

	if (link_socket(s, id, &given.fd, e) < 0)
		return -1;
	return link_adopt(loop, given, id, ops, owner, ret, e);
}

int link_give(struct link *l, struct link_given *ret, struct err *e)
{
	int fd;

	if (l->nchannels)
		return err_set(e, ERR_CONFLICT, "%d requests to sandbox '%s' are open",
			       l->nchannels, l->id);
	conn_push(&l->conn);
	fd = conn_release(&l->conn);
	if (fd < 0)
		return err_set(e, fd == -EBUSY ? ERR_CONFLICT : ERR_UNAVAILABLE,
			       "the connection to sandbox '%s' cannot be given away: %s", l->id,
			       strerror(-fd));
	*ret = (struct link_given){ .fd = fd, .version = l->version, .channel = l->last_channel };
	link_free(l);
	return 0;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	for (int b = 0; b < LINK_BUCKETS; b++)
		while (l->channels[b])
			channel_close(l->channels[b]);
	conn_done(&l->conn);
	loop_timer_stop(l->loop, &l->ping);
	if (l->gone)
		*l->gone = true;
	free(l);
}

static void on_ping(struct loop_timer *t)
{
	struct link *l = container_of(t, struct link, ping);
	struct err e = { 0 };

	loop_timer_set(l->loop, &l->ping, PING_S * NS_PER_S, on_ping);
	if (!l->nchannels) {
		l->heard_ns = clock_mono_ns();
		return;
	}
	/* A warden of version 2 does not answer a PING. */
	if (l->version == 2)
		return;
	if (clock_mono_ns() - l->heard_ns <= SILENCE_S * NS_PER_S) {
		if (l->version)
			(void)conn_send(&l->conn, MSG_C_PING, 0, STR_NONE);
		return;
	}
	(void)err_set(&e, ERR_UNAVAILABLE, "the warden of sandbox '%s' does not answer", l->id);
	(void)err_code(&e, "warden.silent", l->id);
	tell_closed(l, &e);
}

void link_keep_alive(struct link *l)
{
	if (l->keeps_alive || !l->conn.loop)
		return;
	l->keeps_alive = true;
	loop_timer_set(l->loop, &l->ping, PING_S * NS_PER_S, on_ping);
}

void link_hold(struct link *l, bool hold)
{
	l->holds += hold ? 1 : -1;
	if (l->conn.loop)
		conn_hold(&l->conn, l->holds > 0);
}

int link_tell(struct link *l, uint8_t type, struct str body)
{
	return conn_send(&l->conn, type, 0, body);
}

size_t link_backlog(const struct link *l)
{
	return l->conn.loop ? conn_backlog(&l->conn) : 0;
}

void link_watch(struct link *l, const struct link_ops *ops, void *owner)
{
	l->ops = ops;
	l->owner = owner;
}

void *link_owner(const struct link *l)
{
	return l->owner;
}

const char *link_id(const struct link *l)
{
	return l->id;
}

struct loop *link_loop(const struct link *l)
{
	return l->loop;
}

unsigned link_version(const struct link *l)
{
	return l->version;
}
