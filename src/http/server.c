/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/random.h"
#include "http/listen.h"
#include "http/parts.h"

static unsigned or_default(unsigned value, unsigned other)
{
	return value ? value : other;
}

static struct http_limits limits_of(const struct http_limits *given)
{
	struct http_limits l = given ? *given : (struct http_limits){ 0 };

	l.conns = or_default(l.conns, 16384);
	l.unknown = or_default(l.unknown, 2048);
	l.unknown_per_addr = or_default(l.unknown_per_addr, 256);
	l.per_addr = or_default(l.per_addr, 4096);
	l.memory = l.memory ? l.memory : 256u << 20;
	l.bodies = l.bodies ? l.bodies : 64u << 20;
	l.handshake_ms = or_default(l.handshake_ms, 10 * 1000);
	l.first_ms = or_default(l.first_ms, 30 * 1000);
	l.idle_ms = or_default(l.idle_ms, 650 * 1000);
	l.head_ms = or_default(l.head_ms, 15 * 1000);
	l.body_ms = or_default(l.body_ms, 30 * 1000);
	l.stall_ms = or_default(l.stall_ms, 60 * 1000);
	l.wait_ms = or_default(l.wait_ms, 600 * 1000);
	l.linger_ms = or_default(l.linger_ms, 5 * 1000);
	l.ping_ms = or_default(l.ping_ms, 30 * 1000);
	l.full_ms = or_default(l.full_ms, 5 * 1000);
	return l;
}

/* Any descriptor will do; a jail allows few calls that make one. */
int http_server_spare(const struct http_server *s)
{
	return fcntl(s->loop->epfd, F_DUPFD_CLOEXEC, 0);
}

int http_server_init(struct http_server *s, struct loop *l, const struct http_app *app,
		     const struct http_limits *limits)
{
	int r;

	*s = (struct http_server){ .loop = l, .app = app, .limits = limits_of(limits) };
	s->spare_fd = http_server_spare(s);
	if (s->spare_fd < 0)
		return -errno;
	s->scratch = malloc(LIMIT_HTTP_IN);
	r = s->scratch ? random_bytes(&s->addr_key, sizeof s->addr_key) : -ENOMEM;
	if (r < 0) {
		free(s->scratch);
		fd_close(&s->spare_fd);
	}
	return r;
}

void http_server_done(struct http_server *s)
{
	while (s->listeners)
		http_listen_remove(s->listeners);
	while (s->all) {
		http_conn_close(s->all, HTTP_END_STOPPED);
		http_conn_run(s->all);
	}
	loop_timer_stop(s->loop, &s->kick);
	loop_timer_stop(s->loop, &s->rest);
	fd_close(&s->spare_fd);
	free(s->scratch);
	s->scratch = NULL;
}

/* --- limits by address --- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

/* The network of an address: IPv6 clients have a /64 at least. */
static uint16_t addr_slot(const struct http_server *s, const struct ip *ip)
{
	size_t n = ip->len > 8 ? 8 : ip->len;
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | ip->b[i];
	return (uint16_t)(mix(mix(s->addr_key, v), n) >> 32) % HTTP_ADDR_SLOTS;
}

/* False where nobody knows: the client was gone before we accepted it. */
static bool peer_of(int fd, struct http_peer *ret)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof a;

	*ret = (struct http_peer){ 0 };
	if (getpeername(fd, (struct sockaddr *)&a, &n) < 0)
		return false;
	ret->local = a.ss_family == AF_UNIX;
	ret->ip = ip_plain(ip_of_sockaddr((struct sockaddr *)&a, &ret->port));
	n = sizeof ret->cred;
	if (ret->local && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ret->cred, &n) < 0)
		ret->cred = (struct ucred){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
	return ret->local || ret->ip.len != 0;
}

/* Close the oldest idle connection; only an unknown one if `unknown`. False if there is none. */
static bool evict(struct http_server *s, bool unknown)
{
	for (struct http_conn *c = s->idle_first; c; c = c->idle_next)
		if (!unknown || !c->trusted) {
			http_conn_close(c, HTTP_END_GONE);
			return true;
		}
	return false;
}

/* Count c among the unknown ones. False if there are too many. */
static bool count_unknown(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (c->peer.ip.len == 0 || (s->app->is_exempt && s->app->is_exempt(s, &c->peer))) {
		c->trusted = true;
		return true;
	}
	c->addr_slot = addr_slot(s, &c->peer.ip);
	c->counted = true;
	s->all_per_addr[c->addr_slot]++;
	s->per_addr[c->addr_slot]++;
	s->counters.unknown++;
	if (s->per_addr[c->addr_slot] > s->limits.unknown_per_addr ||
	    s->all_per_addr[c->addr_slot] > s->limits.per_addr)
		return false;
	return s->counters.unknown <= s->limits.unknown || evict(s, true);
}

void http_server_forget(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (c->trusted)
		return;
	c->trusted = true;
	s->per_addr[c->addr_slot]--;
	s->counters.unknown--;
}

void http_server_leave(struct http_conn *c)
{
	http_server_forget(c);
	if (c->counted)
		c->server->all_per_addr[c->addr_slot]--;
	c->counted = false;
	if (c->owner)
		c->owner->conns--;
	c->owner = NULL;
}

/* --- connections --- */

int http_server_adopt(struct http_server *s, int fd, const struct http_filter_maker *maker)
{
	struct http_filter *f = maker ? maker->make(maker) : http_filter_plain();
	struct http_conn *c = NULL;
	bool known;

	if (f && io_set_nonblock(fd, true) == 0)
		c = http_conn_new(s, fd, f);
	if (!c) {
		if (f)
			f->ops->free(f);
		fd_close(&fd);
		return -ENOMEM;
	}
	known = peer_of(fd, &c->peer);
	s->counters.accepted++;
	if (!known) {
		c->trusted = true; /* it is in no count */
		http_conn_close(c, HTTP_END_GONE);
	} else if (!count_unknown(c) || (s->counters.conns > s->limits.conns && !evict(s, false))) {
		s->counters.refused[HTTP_REFUSED_CONNS]++;
		http_conn_close(c, HTTP_END_GONE);
	}
	/* Its bytes are often here already; the deadline begins now in any case. */
	http_conn_touch(c);
	return 0;
}

bool http_server_may_accept(const struct http_server *s)
{
	return !s->draining && s->memory <= s->limits.memory &&
	       (s->counters.conns < s->limits.conns || s->idle_first);
}

void http_server_full_wake(struct http_server *s)
{
	if (s->full == 0 || s->bodies >= s->limits.bodies)
		return;
	for (struct http_conn *c = s->all; c; c = c->next)
		if (c->x && c->x->full_in) {
			c->x->full_in = false;
			s->full--;
			http_conn_touch(c);
		}
}

static bool is_movable(const struct http_conn *c)
{
	return c->filter == http_filter_plain() && c->in.len == c->taken && !c->eof && !c->hup;
}

unsigned http_server_give_idle(struct http_server *s,
			       void (*give)(void *user, int fd, bool trusted), void *user)
{
	unsigned given = 0;
	struct http_conn *next;

	for (struct http_conn *c = s->idle_first; c; c = next) {
		bool trusted = c->trusted;
		int fd;

		next = c->idle_next;
		if (!is_movable(c))
			continue;
		loop_del(s->loop, &c->io);
		fd = TAKE_FD(c->fd);
		http_conn_close(c, HTTP_END_GONE);
		give(user, fd, trusted);
		given++;
	}
	return given;
}

int http_server_inherit(struct http_server *s, int fd, bool trusted)
{
	int r = http_server_adopt(s, fd, NULL);

	if (r < 0 || s->all->state == HTTP_CLOSED)
		return r;
	/* The client may keep it idle for as long as before. */
	s->all->first = false;
	if (trusted)
		http_server_forget(s->all);
	return 0;
}

void http_server_retire(struct http_server *s)
{
	s->retiring = true;
	while (s->listeners)
		http_listen_remove(s->listeners);
}

void http_server_drain(struct http_server *s)
{
	struct http_conn *next;

	s->draining = true;
	while (s->listeners)
		http_listen_remove(s->listeners);
	for (struct http_conn *c = s->idle_first; c; c = next) {
		next = c->idle_next;
		http_conn_close(c, HTTP_END_GONE);
	}
}
