/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/netplan.h"

enum {
	OWN_MS = 200,
	SILENCE_MS = 10 * 1000, /* a client that is silent this long has an unknown protocol */
	LAST_READS = 16,
	TICK_MS = 200,
	TICK_RATE_MS = 10,
	READ = EPOLLIN | EPOLLRDHUP,
};

static void on_side(struct loop_io *io, uint32_t events);

const struct sockdiag_owner *flow_owner(struct flow *f)
{
	if (!f->owned)
		f->owner = whose(f->g, IPPROTO_TCP, &f->from, &f->to);
	f->owned = true;
	return &f->owner;
}

void flow_subject(struct flow *f, struct subject *s)
{
	const struct ip *addr = f->dialled.len ? &f->dialled : f->name ? NULL : &f->dst;

	*s = (struct subject){ .owner = flow_owner(f),
			       .name = str_of(f->name),
			       .addr = addr,
			       .port = f->port,
			       .rule = f->rule ? f->rule->id : STR_NONE };
}

void flow_query(const struct flow *f, struct policy_query *q)
{
	*q = (struct policy_query){ .name = str_of(f->name), .port = f->port };
	if (!f->name)
		q->addr = ip_plain(f->dst);
	q->proto = f->looked ? f->proto : PROTO_UNKNOWN;
	q->silent = f->looked && f->silent;
	if (f->hello && f->looked) {
		q->has_sni = f->hello->has_sni;
		q->ech = f->hello->ech;
		q->bad_hello = f->hello->why != NULL;
		q->sni = str_of(f->hello->sni);
	}
}

/* --- time --- */

static void on_tick(struct loop_timer *t);
static void begin(struct flow *f);

static void tick_soon(struct gateway *g)
{
	if (g->nwaiting && !g->tick.at_ns)
		loop_timer_set(&g->loop, &g->tick,
			       (g->nthrottled ? TICK_RATE_MS : TICK_MS) * NS_PER_MS, on_tick);
}

void flow_deadline(struct flow *f, uint64_t ms)
{
	struct gateway *g = f->g;

	g->nwaiting -= f->deadline_ns != 0;
	f->deadline_ns = ms ? clock_mono_ns() + ms * NS_PER_MS : 0;
	g->nwaiting += f->deadline_ns != 0;
	if (g->nthrottled && g->tick.at_ns > clock_mono_ns() + TICK_RATE_MS * NS_PER_MS)
		loop_timer_stop(&g->loop, &g->tick);
	tick_soon(g);
}

static void unthrottle(struct flow *f)
{
	for (int dir = UP; dir <= DOWN; dir++) {
		f->g->nthrottled -= f->way[dir].throttled;
		f->way[dir].throttled = false;
	}
}

/* The time to detect the protocol is over. */
static bool look_is_over(const struct flow *f)
{
	if (f->looked)
		return false;
	return f->state == FLOW_LOOK || (f->state == FLOW_PASS && f->sniff && f->look_by_ns &&
					 f->look_by_ns <= clock_mono_ns());
}

static void on_pass_deadline(struct flow *f)
{
	bool over = look_is_over(f);

	unthrottle(f);
	if (over) {
		f->look_by_ns = 0;
		if (flow_let_go(f) < 0)
			return;
	}
	if (f->http)
		flow_http(f);
	else
		flow_pass(f);
}

static void on_deadline(struct flow *f)
{
	flow_deadline(f, 0);
	if (f->likely && look_is_over(f)) {
		flow_end(f, "the first message is unfinished", true);
		return;
	}
	switch (f->state) {
	case FLOW_OWN:
		begin(f);
		break;
	case FLOW_LOOK:
		f->looked = f->silent = true; /* a silent client counts as opaque until it speaks */
		f->proto = PROTO_TCP;
		flow_step(f);
		break;
	case FLOW_DIAL: /* the dialer has the deadline */
		break;
	case FLOW_PASS:
		on_pass_deadline(f);
		break;
	case FLOW_FRONT:
	case FLOW_LAST:
		flow_end(f, "timeout", true);
		break;
	}
}

static void on_tick(struct loop_timer *t)
{
	struct gateway *g = container_of(t, struct gateway, tick);
	uint64_t now = clock_mono_ns();

	for (uint32_t i = 0; i < g->top; i++)
		if (g->flows[i] && g->flows[i]->deadline_ns && g->flows[i]->deadline_ns <= now)
			on_deadline(g->flows[i]);
	tick_soon(g);
}

/* --- birth and death --- */

static int take_slot(struct gateway *g, uint32_t *ret)
{
	if (g->nfree)
		*ret = g->free_slots[--g->nfree];
	else if (g->top < LIMIT_NET_FLOWS)
		*ret = g->top++;
	else
		return -EBUSY;
	return 0;
}

static void linger_none(int fd)
{
	static const struct linger now = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void flow_close_reset(int *fd)
{
	linger_none(*fd);
	fd_close(fd);
}

void flow_close_one(struct gateway *g)
{
	if (g->nclosing)
		(void)close(g->closing[--g->nclosing]);
}

/* Closing sends packets, and both ends know already: accept the next connection first. */
static void close_later(struct gateway *g, struct side *s)
{
	if (s->fd < 0)
		return;
	if (g->nclosing == LIMIT_NET_CLOSING)
		flow_close_one(g);
	loop_del(&g->loop, &s->io);
	g->closing[g->nclosing++] = TAKE_FD(s->fd);
	g->loop.chores = true;
}

static void flow_free(struct flow *f, bool reset)
{
	struct gateway *g = f->g;

	flow_deadline(f, 0);
	unthrottle(f);
	ask_cancel(g, f->slot, &f->asked);
	if (f->dns)
		dns_cancel(f->dns);
	if (f->counted) {
		struct meter *m = meter_of(g, f->rule);

		meter_close(&g->total);
		if (m)
			meter_close(m);
	}
	for (int i = UP; i <= DOWN; i++) {
		if (reset)
			linger_none(f->side[i].fd);
		close_later(g, &f->side[i]);
		if (f->way[i].pipe) { /* it holds data, so it cannot be reused */
			(void)close(f->way[i].pipe->r);
			(void)close(f->way[i].pipe->w);
			free(f->way[i].pipe);
		}
	}
	g->flows[f->slot] = NULL;
	g->free_slots[g->nfree++] = f->slot;
	g->nflows--;
	free(f->name);
	free(f->first);
	free(f->hello);
	free(f->http);
	free(f);
}

void flow_end(struct flow *f, const char *reason, bool reset)
{
	struct gateway *g = f->g;
	struct subject s;
	size_t at;

	flow_tell_connected(f);
	flow_subject(f, &s);
	if (!f->told && !f->refused && f->front != FRONT_DNS)
		flow_tell_failed(f, reason);
	if (f->told && event_begin(g, GW_KIND_CLOSE, f->slot, &s, &at) == 0) {
		event_num(g, GW_T_UP, f->way[UP].bytes);
		event_num(g, GW_T_DOWN, f->way[DOWN].bytes);
		event_num(g, GW_T_US, (clock_mono_ns() - f->began_ns) / NS_PER_US);
		event_text(g, GW_T_REASON, str_of(reason));
		event_end(g, at, EVENT_LATER);
	}
	flow_free(f, reset);
}

void flow_end_all(struct gateway *g, const char *reason)
{
	for (uint32_t i = 0; i < g->top; i++)
		if (g->flows[i])
			flow_end(g->flows[i], reason, true);
}

/* The target of a connection to one of the gateway's own addresses. */
static bool take_front(struct flow *f)
{
	struct ip gateway = gateway_ip(f->dst.len == 4 ? AF_INET : AF_INET6);
	bool ours = ip_eq(&f->dst, &gateway);

	if (f->port == NETPLAN_PORT_DNS)
		f->front = FRONT_DNS;
	else if (ours && f->port == NETPLAN_PORT_HTTP_PROXY)
		f->front = FRONT_HTTP;
	else if (ours && f->port == NETPLAN_PORT_SOCKS)
		f->front = FRONT_SOCKS;
	else
		return false;
	return true;
}

static void begin(struct flow *f)
{
	const struct policy_verdict none = { .kind = POLICY_DENY, .reason = REASON_NEVER };
	struct policy_query q;
	const char *name;

	if (take_front(f)) {
		f->state = FLOW_FRONT;
		flow_deadline(f, SILENCE_MS);
		flow_watch(f);
		return;
	}
	if (addresses_has(&f->dst)) {
		name = addresses_find(f->g->addresses, &f->dst);
		if (name)
			f->name = strdup(name);
		if (!f->name) { /* its name was forgotten: too many names were looked up since */
			flow_query(f, &q);
			flow_deny(f, &q, &none);
			return;
		}
	}
	f->state = FLOW_LOOK;
	flow_step(f);
}

int flow_buffer(const struct gateway *g)
{
	return g->nflows <= LIMIT_NET_ROOMY  ? 0
	       : g->nflows <= LIMIT_NET_SNUG ? LIMIT_NET_BUFFER
					     : LIMIT_NET_BUFFER_LEAST;
}

void flow_fit_buffers(const struct gateway *g, int fd)
{
	int size = flow_buffer(g);

	if (size == 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void flow_new(struct gateway *g, int fd, const struct target *from, const struct target *to)
{
	struct flow *f = calloc(1, sizeof *f);
	uint32_t slot;

	if (!f || take_slot(g, &slot) < 0) {
		free(f);
		flow_close_reset(&fd);
		return;
	}
	*f = (struct flow){ .g = g, .slot = slot, .dst = to->ip, .port = to->port };
	f->from = *from;
	f->to = *to;
	f->began_ns = clock_mono_ns();
	f->side[UP] = (struct side){ .f = f, .fd = fd };
	f->side[DOWN] = (struct side){ .f = f, .fd = FD_NONE };
	g->flows[slot] = f;
	g->nflows++;
	flow_fit_buffers(g, fd);
	if (g->ask && flow_owner(f)->inode &&
	    CONN_SAY(&g->warden, GW_WHOSE, slot, { GW_T_INODE, f->owner.inode, NULL }) == 0) {
		flow_deadline(f, OWN_MS); /* FLOW_OWN */
		flow_watch(f);
	} else {
		begin(f);
	}
}

void flow_owned(struct gateway *g, uint32_t slot)
{
	struct flow *f = slot < g->top ? g->flows[slot] : NULL;

	if (!f || f->state != FLOW_OWN)
		return;
	flow_deadline(f, 0);
	begin(f);
}

/* --- events --- */

static uint32_t wanted(const struct flow *f, enum flow_dir dir)
{
	const struct side *s = &f->side[dir];

	switch (f->state) {
	case FLOW_OWN:
		return 0;
	case FLOW_FRONT:
	case FLOW_LAST:
		return dir == UP && !f->dns_waits ? READ : 0;
	case FLOW_LOOK:
		return dir == UP && !s->eof ? READ : 0;
	case FLOW_DIAL:
		return 0;
	case FLOW_PASS:
		break;
	}
	return (s->eof || s->quiet || f->way[dir].pipe || f->way[dir].throttled ? 0 : READ) |
	       (s->full ? EPOLLOUT : 0);
}

/* epoll always reports errors and hang-ups: use edge-triggered mode where they stay unread. */
static uint32_t masked(uint32_t events)
{
	return events & READ ? events : events | EPOLLET;
}

void flow_watch(struct flow *f)
{
	for (int dir = UP; dir <= DOWN; dir++) {
		struct side *s = &f->side[dir];
		uint32_t events = masked(wanted(f, (enum flow_dir)dir));

		if (s->fd < 0)
			continue;
		if (s->io.fn && s->io.fd == s->fd)
			(void)loop_mod(&f->g->loop, &s->io, events);
		else if (loop_add(&f->g->loop, &s->io, s->fd, events, on_side) < 0) {
			flow_end(f, "out of memory", true);
			return;
		}
	}
}

static void on_last(struct flow *f, uint32_t events)
{
	char sink[4096];
	ssize_t n;
	int left = LAST_READS; /* a client that keeps sending is cut at the deadline */

	do {
		n = recv(f->side[UP].fd, sink, sizeof sink, MSG_DONTWAIT);
	} while (n > 0 && --left > 0);
	if (n == 0 || (n < 0 && errno != EAGAIN) || (events & (EPOLLERR | EPOLLHUP)))
		flow_end(f, "refused", false);
}

static void on_side(struct loop_io *io, uint32_t events)
{
	struct side *s = container_of(io, struct side, io);
	struct flow *f = s->f;
	bool client = s == &f->side[UP], broken = events & (EPOLLERR | EPOLLHUP);

	if (broken && ((client && f->state < FLOW_PASS) || (f->state == FLOW_PASS && s->eof))) {
		flow_end(f, client ? "reset by the client" : "reset by the server", true);
		return;
	}
	s->hup |= (events & EPOLLRDHUP) != 0;
	s->ready |= (events & (READ | EPOLLERR | EPOLLHUP)) != 0;
	if (events & EPOLLOUT)
		s->full = false;
	switch (f->state) {
	case FLOW_OWN:
		break;
	case FLOW_FRONT:
		flow_front(f);
		break;
	case FLOW_LOOK:
		flow_step(f);
		break;
	case FLOW_DIAL:
		break;
	case FLOW_PASS:
		if (f->http)
			flow_http(f);
		else
			flow_pass(f);
		break;
	case FLOW_LAST:
		on_last(f, events);
		break;
	}
}

/* --- the decision --- */

void flow_step(struct flow *f)
{
	struct policy_query q;
	struct policy_verdict v;

	flow_query(f, &q);
	policy_decide(f->g->policy, &q, &v);
	if (v.kind == POLICY_DENY) {
		flow_deny(f, &q, &v);
		return;
	}
	f->rule = v.rule;
	f->sniff = v.inspect == INSPECT_MAY;
	if (!f->looked && (v.inspect == INSPECT_MUST || v.needs & POLICY_NEEDS_PROTO)) {
		enum look l;

		if (flow_front_opened(f) < 0) {
			flow_end(f, "reset by the client", true);
			return;
		}
		l = flow_look(f);

		if (l == LOOK_DONE)
			flow_step(f); /* not repeated: the protocol is known now */
		if (l != LOOK_MORE)
			return;
		if (!f->deadline_ns)
			flow_deadline(f, SILENCE_MS);
		flow_watch(f);
		return;
	}
	flow_dial(f);
}
