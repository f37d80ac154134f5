/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of conn: a conn `a`, connected by a socketpair to a conn `b` or to the bare
 * descriptor `peer`. Each side counts what it receives. tear_down() checks that no descriptor
 * leaks.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "loop/conn.h"
#include "t.h"

enum { END = 200, PIECE = LIMIT_FRAME_DATA };

struct side {
	struct conn c;
	uint64_t bytes;	 /* received in bodies */
	int frames, fds; /* received */
	uint8_t types[64];
	int stop_at;	    /* stop the loop after this many frames */
	int hold_at;	    /* hold after this many frames */
	int closed, err;    /* number of calls, last argument */
	int drained;	    /* number of calls */
	uint64_t left;	    /* bytes to send when the backlog allows it */
	bool done_in_frame; /* call conn_done() from the frame callback */
	bool end_sent;
};

static struct loop l;
static struct side a, b;
static int peer = FD_NONE;

static inline struct side *side_of(struct conn *c)
{
	return container_of(c, struct side, c);
}

static inline void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct side *s = side_of(c);

	if (s->frames < (int)ARRAY_LEN(s->types))
		s->types[s->frames] = f->type;
	s->frames++;
	s->bytes += f->body.n;
	s->fds += f->nfds;
	for (int i = 0; i < f->nfds; i++) {
		CHECK(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
		(void)close(fds[i]);
	}
	if (s->frames == s->hold_at)
		conn_hold(c, true);
	if (s->frames == s->stop_at || f->type == END)
		loop_stop(&l);
	if (s->done_in_frame)
		conn_done(c);
}

static inline void on_closed(struct conn *c, int err)
{
	struct side *s = side_of(c);

	s->closed++;
	s->err = err;
	conn_done(c);
	loop_stop(&l);
}

/* Send the rest, as far as the backlog allows. */
static inline void pump(struct side *s)
{
	static char piece[PIECE];

	while (s->left && conn_backlog(&s->c) < LIMIT_CONN_HIGH) {
		size_t n = s->left < PIECE ? (size_t)s->left : PIECE;

		CHECK(conn_send(&s->c, 1, 0, (struct str){ piece, n }) == 0);
		s->left -= n;
	}
	if (!s->left && !s->end_sent) {
		s->end_sent = true;
		CHECK(conn_send(&s->c, END, 0, STR_NONE) == 0);
	}
}

static inline void on_drained(struct conn *c)
{
	side_of(c)->drained++;
	if (side_of(c)->left)
		pump(side_of(c));
}

static const struct conn_ops ops = { .frame = on_frame,
				     .closed = on_closed,
				     .drained = on_drained };

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static int fds_before;

static inline void set_up(bool both)
{
	int sv[2];

	fds_before = count_fds();
	CHECK(loop_init(&l) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	CHECK(conn_init(&a.c, &l, sv[0], &ops) == 0);
	if (both)
		CHECK(conn_init(&b.c, &l, sv[1], &ops) == 0);
	else
		peer = sv[1];
}

static inline void tear_down(void)
{
	conn_done(&a.c);
	conn_done(&b.c);
	conn_done(&b.c);
	fd_close(&peer);
	loop_done(&l);
	CHECK(count_fds() == fds_before);
}

/* The time is over, but a machine that paused may have left work: stop when nothing is ready. */
static inline void on_end(struct loop_timer *t)
{
	(void)t;
	l.chores = true;
}

/* Run the loop for a while, and until nothing is ready. */
static inline void run_for_ms(uint64_t ms)
{
	struct loop_timer end = { 0 };

	l.idle = loop_stop;
	loop_timer_set(&l, &end, ms * NS_PER_MS, on_end);
	CHECK(loop_run(&l) == 0);
	loop_timer_stop(&l, &end);
}

static inline void send_one(struct conn *c, uint8_t type)
{
	CHECK(conn_send(c, type, 0, STR("body")) == 0);
}

static inline void send_fds(struct conn *c, int n, size_t body)
{
	static char bytes[LIMIT_FRAME_BODY];
	int fds[LIMIT_FRAME_FDS];
	size_t at = 0;

	for (int i = 0; i < n; i++)
		CHECK((fds[i] = fcntl(0, F_DUPFD_CLOEXEC, 3)) >= 0);
	CHECK(conn_begin(c, 2, 0, &at) == 0);
	CHECK(buf_add(&c->out, bytes, body) == 0);
	CHECK(conn_end(c, at, fds, n) == 0);
}

/* Send bytes with n descriptors from the bare end. */
static inline void raw(const void *p, size_t size, int n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
		struct cmsghdr align;
	} ctl = { .bytes = { 0 } };
	struct iovec iov = { (void *)p, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		m.msg_control = &ctl;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
		*CMSG_FIRSTHDR(&m) =
			(struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n) };
		for (int i = 0, zero = 0; i < n; i++)
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)) + sizeof(int) * (size_t)i, &zero,
			       sizeof zero);
	}
	CHECK(sendmsg(peer, &m, MSG_NOSIGNAL) == (ssize_t)size);
}

/* Fill a's backlog above the mark while its peer does not read. */
static inline void fill(void)
{
	static char piece[PIECE];

	while (conn_backlog(&a.c) < LIMIT_CONN_HIGH)
		CHECK(conn_send(&a.c, 1, 0, (struct str){ piece, PIECE }) == 0);
}
