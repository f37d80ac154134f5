/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the warden, and connections to ports inside. */
#include <errno.h>

#include "link/decode.h"
#include "link/parts.h"

static void ask_end(struct link_ask *a, const struct err *why)
{
	channel_close(&a->channel);
	a->done(a, why);
}

static void on_ask_frame(struct link_channel *c, const struct frame *f, int *fds)
{
	struct link_ask *a = container_of(c, struct link_ask, channel);
	struct err e = { 0 };
	bool gone = false;
	int r;

	frame_close_fds(f, fds);
	if (f->type == MSG_C_ERROR) {
		(void)frame_error(f, &e);
		ask_end(a, &e);
		return;
	}
	c->gone = &gone;
	r = a->answer(a, f);
	if (gone)
		return;
	c->gone = NULL;
	if (r > 0)
		return;
	if (r < 0) {
		(void)err_set(&e, ERR_FAILED, "the warden of sandbox '%s' answered something else",
			      c->link->id);
		(void)err_code(&e, "warden.protocol", c->link->id);
	}
	ask_end(a, r < 0 ? &e : NULL);
}

static void on_ask_failed(struct link_channel *c, const struct err *why)
{
	struct link_ask *a = container_of(c, struct link_ask, channel);

	a->done(a, why);
}

int link_ask(struct link *l, struct link_ask *a, uint8_t type, struct str body, uint64_t timeout_ms)
{
	static const struct link_channel_ops ops = { .frame = on_ask_frame,
						     .failed = on_ask_failed };
	int r = channel_open(l, &a->channel, &ops, timeout_ms);

	if (r == 0)
		r = conn_send(&l->conn, type, a->channel.number, body);
	if (r < 0)
		channel_close(&a->channel);
	return r;
}

void link_ask_drop(struct link_ask *a)
{
	channel_close(&a->channel);
}

static void on_dial_failed(struct link_channel *c, const struct err *why)
{
	struct link_dial *d = container_of(c, struct link_dial, channel);

	d->done(d, FD_NONE, why);
}

static void on_dial_frame(struct link_channel *c, const struct frame *f, int *fds)
{
	struct link_dial *d = container_of(c, struct link_dial, channel);
	struct err e = { 0 };
	int fd = f->type == MSG_C_DIALED && f->nfds == 1 ? TAKE_FD(fds[0]) : FD_NONE;

	frame_close_fds(f, fds);
	if (f->type == MSG_C_ERROR)
		(void)frame_error(f, &e);
	else if (fd < 0)
		(void)err_set(&e, ERR_FAILED, "the warden of sandbox '%s' sent no connection",
			      c->link->id);
	channel_close(c);
	d->done(d, fd, fd < 0 ? &e : NULL);
}

int link_dial(struct link *l, struct link_dial *d, uint16_t port, uint64_t timeout_ms)
{
	static const struct link_channel_ops ops = { .frame = on_dial_frame,
						     .failed = on_dial_failed };
	int r = channel_open(l, &d->channel, &ops, timeout_ms);

	if (r == 0)
		r = CONN_SAY(&l->conn, MSG_C_DIAL, d->channel.number, { TAG_PORT, port, NULL });
	if (r < 0)
		channel_close(&d->channel);
	return r;
}

void link_dial_drop(struct link_dial *d)
{
	channel_close(&d->channel);
}
