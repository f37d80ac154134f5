/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/resolve.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/limits.h"

enum {
	KEPT = 128,	  /* cached answers */
	KEEP_MOST_S = 60, /* like the TTL of addresses given to the sandbox */
	KEEP_FAILURE_S = 2,
	TIMEOUT_MS = 2000, /* of one try */
	TRIES = 3,
};

struct lookup {
	struct resolver *r;
	struct lookup *next;
	struct resolve_wait *waits;
	char name[HOST_TEXT];
};

struct kept {
	char name[HOST_TEXT];
	uint64_t until_ns;
	struct resolve_answer answer;
};

/* A socket of c-ares. */
struct ares_io {
	struct loop_io io;
	struct resolver *r;
	struct ares_io *next;
};

struct resolver {
	struct loop *loop;
	ares_channel channel;
	struct loop_timer timer;
	struct ares_io *ios;
	struct lookup *lookups;
	int nlookups;
	struct kept *kept[KEPT];
};

static void await_timeout(struct resolver *r);

static void on_timer(struct loop_timer *t)
{
	struct resolver *r = container_of(t, struct resolver, timer);

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	await_timeout(r);
}

static void await_timeout(struct resolver *r)
{
	struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);

	if (!next)
		loop_timer_stop(r->loop, &r->timer);
	else
		loop_timer_set(r->loop, &r->timer,
			       (uint64_t)next->tv_sec * NS_PER_S +
				       (uint64_t)next->tv_usec * NS_PER_US + NS_PER_MS,
			       on_timer);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct ares_io *a = container_of(io, struct ares_io, io);
	struct resolver *r = a->r;
	bool in = events & (EPOLLIN | EPOLLERR | EPOLLHUP), out = events & EPOLLOUT;
	int fd = io->fd;

	ares_process_fd(r->channel, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
	await_timeout(r);
}

static struct ares_io **find_io(struct resolver *r, int fd)
{
	struct ares_io **at = &r->ios;

	while (*at && (*at)->io.fd != fd)
		at = &(*at)->next;
	return at;
}

/* Called by c-ares: watch this socket for these events. */
static void on_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = ctx;
	struct ares_io **at = find_io(r, fd), *a = *at;
	uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);

	if (!events) {
		if (!a)
			return;
		*at = a->next;
		loop_del(r->loop, &a->io);
		free(a);
		return;
	}
	if (a) {
		(void)loop_mod(r->loop, &a->io, events);
		return;
	}
	a = calloc(1, sizeof *a);
	if (!a)
		return; /* the query then times out */
	a->r = r;
	if (loop_add(r->loop, &a->io, fd, events, on_io) < 0) {
		free(a);
		return;
	}
	a->next = r->ios;
	r->ios = a;
}

static struct kept **kept_of(struct resolver *r, const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 ^ (unsigned char)*name;
	return &r->kept[h % KEPT];
}

static void keep(struct resolver *r, const char *name, const struct resolve_answer *a, unsigned ttl)
{
	struct kept **at = kept_of(r, name);

	if (!*at)
		*at = malloc(sizeof **at);
	if (!*at)
		return;
	(void)str_copy((*at)->name, sizeof(*at)->name, str_of(name));
	(*at)->until_ns = clock_mono_ns() + ttl * NS_PER_S;
	(*at)->answer = *a;
}

/* Alternate the families, so that a host without IPv6 soon tries an IPv4 address. */
static unsigned take_addrs(const struct ares_addrinfo *info, struct resolve_answer *a)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const struct ares_addrinfo_node *at[2] = { info->nodes, info->nodes };
	unsigned ttl = KEEP_MOST_S;
	bool any = true;
	uint16_t port;

	while (any && a->n < RESOLVE_ADDRS) {
		any = false;
		for (int f = 0; f < 2 && a->n < RESOLVE_ADDRS; f++) {
			while (at[f] && at[f]->ai_family != families[f])
				at[f] = at[f]->ai_next;
			if (!at[f])
				continue;
			if (at[f]->ai_ttl >= 0 && (unsigned)at[f]->ai_ttl < ttl)
				ttl = (unsigned)at[f]->ai_ttl;
			a->addrs[a->n++] = ip_of_sockaddr(at[f]->ai_addr, &port);
			at[f] = at[f]->ai_next;
			any = true;
		}
	}
	return ttl ? ttl : 1;
}

static int status_of(int ares)
{
	switch (ares) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENOTFOUND:
	case ARES_ENODATA:
	case ARES_EBADNAME:
		return -ENOENT;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

static void answer_all(struct lookup *l, const struct resolve_answer *a)
{
	while (l->waits) {
		struct resolve_wait *w = l->waits;

		l->waits = w->next;
		w->lookup = NULL;
		w->fn(w, a);
	}
}

static void on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup *l = ctx;
	struct resolver *r = l->r;
	struct resolve_answer a = { .status = status_of(status) };
	unsigned ttl = KEEP_FAILURE_S;

	(void)timeouts;
	if (a.status == 0 && info)
		ttl = take_addrs(info, &a);
	if (info)
		ares_freeaddrinfo(info);
	if (a.status == 0 && a.n == 0)
		a.status = -ENOENT;
	for (struct lookup **at = &r->lookups; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	r->nlookups--;
	keep(r, l->name, &a, ttl);
	answer_all(l, &a);
	free(l);
}

int resolver_new(struct loop *loop, const char *servers, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof *r);
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.lookups = "b",
		.sock_state_cb = on_state,
		.sock_state_cb_data = r,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
		   ARES_OPT_SOCK_STATE_CB;

	if (!r)
		return -ENOMEM;
	r->loop = loop;
	if (ares_init_options(&r->channel, &o, mask) != ARES_SUCCESS ||
	    ares_set_servers_ports_csv(r->channel, servers) != ARES_SUCCESS) {
		free(r);
		return -EINVAL;
	}
	*ret = r;
	return 0;
}

static struct lookup *lookup_of(struct resolver *r, const char *name)
{
	struct lookup *l = r->lookups;

	while (l && strcmp(l->name, name) != 0)
		l = l->next;
	return l;
}

int resolve(struct resolver *r, const char *name, struct resolve_wait *w,
	    void (*fn)(struct resolve_wait *, const struct resolve_answer *))
{
	static const struct ares_addrinfo_hints hints = { .ai_flags = ARES_AI_NOSORT,
							  .ai_family = AF_UNSPEC,
							  .ai_socktype = SOCK_STREAM };
	const struct kept *k = *kept_of(r, name);
	struct lookup *l;

	*w = (struct resolve_wait){ .fn = fn };
	if (k && strcmp(k->name, name) == 0 && k->until_ns > clock_mono_ns()) {
		struct resolve_answer a = k->answer;

		fn(w, &a);
		return 0;
	}
	l = lookup_of(r, name);
	if (l) {
		w->lookup = l;
		w->next = l->waits;
		l->waits = w;
		return 0;
	}
	l = r->nlookups < LIMIT_NET_LOOKUPS ? calloc(1, sizeof *l) : NULL;
	if (!l)
		return -EBUSY;
	l->r = r;
	(void)str_copy(l->name, sizeof l->name, str_of(name));
	l->waits = w;
	w->lookup = l;
	l->next = r->lookups;
	r->lookups = l;
	r->nlookups++;
	ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, l);
	await_timeout(r);
	return 0;
}

void resolve_cancel(struct resolve_wait *w)
{
	if (!w->lookup)
		return;
	for (struct resolve_wait **at = &w->lookup->waits; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	w->lookup = NULL;
}
