/* SPDX-License-Identifier: Apache-2.0 */
/* Pass bytes from one side to the other without copying: splice(2) through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"

enum {
	PIPES_KEPT = 32,
	ROUNDS = 2,	    /* then other connections get a turn */
	LITTLE = 16 * 1024, /* a shorter read emptied the socket */
	SNIFF_MS = 300,	    /* a client that pauses this long after its first bytes has an unknown
			       protocol */
	LIKELY_MS =
		10 * 1000, /* unless the bytes begin a known protocol: a pause must not hide it */
};

static struct pipe *pipe_get(struct gateway *g)
{
	struct pipe *p = g->pipes;
	int fds[2];

	if (p) {
		g->pipes = p->next;
		g->npipes--;
		return p;
	}
	p = malloc(sizeof *p);
	if (!p || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(p);
		return NULL;
	}
	(void)fcntl(fds[0], F_SETPIPE_SZ, LIMIT_NET_PIPE); /* a smaller pipe works too */
	*p = (struct pipe){ .r = fds[0], .w = fds[1] };
	return p;
}

/* Keep an empty pipe for reuse; close any other. */
static void pipe_free(struct pipe *p)
{
	(void)close(p->r);
	(void)close(p->w);
	free(p);
}

void pipe_put(struct gateway *g, struct pipe *p)
{
	if (g->npipes >= PIPES_KEPT) {
		pipe_free(p);
		return;
	}
	p->next = g->pipes;
	g->pipes = p;
	g->npipes++;
}

static void throttle(struct flow *f, enum flow_dir dir, uint64_t wait_ns)
{
	if (!f->way[dir].throttled)
		f->g->nthrottled++;
	f->way[dir].throttled = true;
	flow_deadline(f, wait_ns / NS_PER_MS + 1);
}

int flow_quota(struct flow *f, enum flow_dir dir, uint64_t *ret)
{
	struct meter *meters[2] = { &f->g->total, meter_of(f->g, f->rule) };
	enum meter_dir d = dir == UP ? METER_UP : METER_DOWN;
	uint64_t now = clock_mono_ns();

	*ret = UINT64_MAX;
	for (int i = 0; i < 2 && meters[i]; i++) {
		enum meter_hit hit = METER_OK;
		uint64_t ready = meter_ready(meters[i], d, now, &hit);

		if (ready == 0 && hit == METER_BYTES) {
			flow_deny_limit(f, f->rule, hit);
			return -1;
		}
		if (ready == 0)
			throttle(f, dir, meter_wait_ns(meters[i], d, now));
		if (ready < *ret)
			*ret = ready;
	}
	return 0;
}

void flow_count(struct flow *f, enum flow_dir dir, uint64_t n)
{
	enum meter_dir d = dir == UP ? METER_UP : METER_DOWN;
	struct meter *m = meter_of(f->g, f->rule);
	uint64_t now = clock_mono_ns();

	f->way[dir].bytes += n;
	meter_add(&f->g->total, d, n, now);
	if (m)
		meter_add(m, d, n, now);
}

/*
 * 1: bytes were read. 0: none now. -1: f is freed. Does not try if the socket is known to be empty:
 * epoll reports new bytes.
 */
static int fill(struct flow *f, enum flow_dir dir, uint64_t limit)
{
	struct side *from = &f->side[dir];
	struct way *w = &f->way[dir];
	uint64_t quota;
	size_t most;
	ssize_t n;

	if (from->eof || !from->ready || w->pipe || limit == 0)
		return 0;
	if (flow_quota(f, dir, &quota) < 0)
		return -1;
	if (quota > limit)
		quota = limit;
	if (quota == 0)
		return 0;
	w->pipe = pipe_get(f->g);
	if (!w->pipe) {
		flow_end(f, "out of descriptors", true);
		return -1;
	}
	most = flow_buffer(f->g) ? (size_t)flow_buffer(f->g) : LIMIT_NET_PIPE;
	n = splice(from->fd, NULL, w->pipe->w, NULL, quota < most ? (size_t)quota : most,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0) {
		w->held = (size_t)n;
		from->ready = from->hup || n >= LITTLE;
		return 1;
	}
	pipe_put(f->g, TAKE_PTR(w->pipe));
	from->ready = false;
	if (n == 0) {
		from->eof = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		flow_end(f, dir == UP ? "reset by the client" : "reset by the server", true);
		return -1;
	}
	return 0;
}

/* 1: everything was written. 0: the other side is full. -1: f is freed. */
static int drain(struct flow *f, enum flow_dir dir, uint64_t *limit)
{
	struct side *to = &f->side[!dir];
	struct way *w = &f->way[dir];

	while (w->pipe) {
		ssize_t n = splice(w->pipe->r, NULL, to->fd, NULL, w->held,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EAGAIN) {
			to->full = true;
			return 0;
		}
		if (n <= 0) {
			flow_end(f, dir == UP ? "reset by the server" : "reset by the client",
				 true);
			return -1;
		}
		flow_count(f, dir, (uint64_t)n);
		w->held -= (size_t)n;
		*limit -= (uint64_t)n;
		if (w->held == 0)
			pipe_put(f->g, TAKE_PTR(w->pipe));
	}
	to->full = false;
	return 1;
}

int flow_pump(struct flow *f, enum flow_dir dir, uint64_t *limit)
{
	for (int i = 0; i < ROUNDS; i++) {
		int r = drain(f, dir, limit);

		if (r <= 0)
			return r;
		r = fill(f, dir, *limit);
		if (r < 0)
			return -1;
		if (r == 0)
			break;
	}
	return drain(f, dir, limit) < 0 ? -1 : 0;
}

int flow_flush(struct flow *f, enum flow_dir dir)
{
	uint64_t any = UINT64_MAX;

	return drain(f, dir, &any);
}

/* This side ended, and all its bytes were passed on. */
static bool is_over(const struct flow *f, enum flow_dir dir)
{
	return f->side[dir].eof && !f->way[dir].pipe;
}

void flow_settle(struct flow *f)
{
	if (is_over(f, UP) && is_over(f, DOWN)) { /* closing signals the end to both */
		flow_end(f, "closed", false);
		return;
	}
	for (int dir = UP; dir <= DOWN; dir++) {
		struct side *to = &f->side[!dir];

		if (!is_over(f, (enum flow_dir)dir) || to->shut)
			continue;
		(void)shutdown(to->fd, SHUT_WR);
		to->shut = true;
	}
	flow_watch(f);
}

/* The client pauses after its first bytes. Rate limits share this deadline, so it can fire early.
 */
static void await_rest(struct flow *f, bool restart)
{
	uint64_t now = clock_mono_ns();

	if (!f->look_by_ns || restart)
		f->look_by_ns = now + (f->likely ? LIKELY_MS : SNIFF_MS) * NS_PER_MS;
	if (!f->deadline_ns || restart)
		flow_deadline(f, f->look_by_ns > now ? (f->look_by_ns - now) / NS_PER_MS + 1 : 1);
}

/* Detect the protocol of a connection that is open already. 1: allowed. 0: undecided. -1: f is
 * freed. */
static int look_in_passing(struct flow *f)
{
	struct policy_query q;
	struct policy_verdict v;
	bool was_likely = f->likely;
	enum look l = flow_look(f);

	if (l == LOOK_MORE && f->side[UP].seen)
		await_rest(f, f->likely != was_likely);
	if (l == LOOK_MORE)
		return flow_flush(f, UP) < 0 ? -1 : 0;
	if (l == LOOK_PART)
		return flow_let_go(f);
	if (l == LOOK_BAD)
		return -1;
	flow_deadline(f, 0);
	f->sniff = false;
	flow_query(f, &q);
	if (f->dialled.len)
		q.addr = f->dialled;
	policy_decide(f->g->policy, &q, &v);
	if (v.kind == POLICY_DENY) {
		flow_deny(f, &q, &v);
		return -1;
	}
	if (!flow_dial_recount(f, v.rule))
		return -1;
	flow_tell_tls(f);
	if (!f->http)
		return 1;
	flow_http(f);
	return -1;
}

void flow_pass(struct flow *f)
{
	uint64_t no_limit = UINT64_MAX;
	int r = f->sniff && !f->looked ? look_in_passing(f) : 1;

	if (r < 0 || (r > 0 && flow_pump(f, UP, &no_limit) < 0) ||
	    flow_pump(f, DOWN, &no_limit) < 0)
		return;
	flow_settle(f);
}
