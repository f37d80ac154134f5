/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A restart, as the two fronts see it. The older one stops accepting, finishes what it has begun,
 * and gives each plain connection to the newer one as soon as no request is under way on it.
 * Connections with TLS cannot move: they end after their next answer.
 *
 *   older ── F_GIVE, one connection each ──> newer
 */
#include <unistd.h>

#include "api/front.h"
#include "base/clock.h"

enum { RETIRE_LOOK_MS = 10, RETIRE_S = 15 * 60 };

/* ---- the older one ---- */

static void give(void *user, int fd, bool trusted)
{
	struct front *f = user;
	size_t at = 0;

	if (conn_begin(&f->heir, F_GIVE, 0, &at) < 0) {
		(void)close(fd);
		return;
	}
	if (field_put_u64(&f->heir.out, CONTROL_TRUSTED, trusted) < 0) {
		conn_cancel(&f->heir, at);
		(void)close(fd);
		return;
	}
	(void)conn_end(&f->heir, at, &fd, 1);
}

static void on_retire_look(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, retire);

	/* Without an heir we keep them: the supervisor tells of another. */
	if (f->heir.loop && conn_backlog(&f->heir) < LIMIT_CONN_HIGH)
		(void)http_server_give_idle(&f->http, give, f);
	if (f->http.counters.conns == 0 && (!f->heir.loop || conn_backlog(&f->heir) == 0))
		loop_stop(&f->loop);
	else if (clock_mono_ns() > f->retire_until_ns)
		front_drain(f);
	else
		loop_timer_set(&f->loop, t, RETIRE_LOOK_MS * NS_PER_MS, on_retire_look);
}

static void on_heir_frame(struct conn *c, const struct frame *frame, int *fds)
{
	(void)c;
	for (int i = 0; i < frame->nfds; i++)
		(void)close(fds[i]);
}

static void on_heir_left(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

void front_retire(struct front *f, int fd)
{
	static const struct conn_ops ops = { .frame = on_heir_frame, .closed = on_heir_left };

	conn_done(&f->heir);
	if (conn_init(&f->heir, &f->loop, fd, &ops) < 0)
		return;
	if (!f->http.retiring)
		f->retire_until_ns = clock_mono_ns() + RETIRE_S * NS_PER_S;
	http_server_retire(&f->http);
	loop_timer_set(&f->loop, &f->retire, 0, on_retire_look);
}

/* ---- the newer one ---- */

static void on_given(struct conn *c, const struct frame *frame, int *fds)
{
	struct elder *from = container_of(c, struct elder, conn);
	struct str body = frame->body;
	struct field field;
	uint64_t trusted = 0;

	if (frame->type == F_GIVE && field_next(&body, &field) == 1)
		(void)field_u64(field, &trusted);
	for (int i = 0; i < frame->nfds; i++)
		(void)http_server_inherit(&from->front->http, fds[i], trusted != 0);
}

static void on_elder_left(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

void front_inherit(struct front *f, int fd)
{
	static const struct conn_ops ops = { .frame = on_given, .closed = on_elder_left };

	for (size_t i = 0; i < FRONT_ELDERS; i++)
		if (!f->elders[i].conn.loop) {
			f->elders[i].front = f;
			(void)conn_init(&f->elders[i].conn, &f->loop, fd, &ops);
			return;
		}
	(void)close(fd); /* that front keeps its connections */
}

void front_retire_done(struct front *f)
{
	conn_done(&f->heir);
	for (size_t i = 0; i < FRONT_ELDERS; i++)
		conn_done(&f->elders[i].conn);
}
