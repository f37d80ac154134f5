/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver of the sandbox. A name that the policy may allow and that exists gets an address of
 * the private range (addresses.h). For every other name the answer is NXDOMAIN with an extended
 * error that says why. A denied name is never sent out, so DNS queries cannot carry data out.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/netplan.h"
#include "gateway/gateway.h"
#include "wire/dns.h"

enum {
	TTL_S = 60,
	BATCH = 64,	  /* datagrams of one turn */
	EVENTS_A_S = 200, /* query events per second; further queries are only counted */
};

struct udp_peer {
	int fd;
	socklen_t len;
	struct sockaddr_storage addr;
};

/* A query that waits for its answer. */
struct dns_pending {
	struct gateway *g;
	uint32_t slot;	/* in queries */
	uint32_t asked; /* number of the ask to the dialer */
	struct dns_query q;
	struct sockdiag_owner owner;
	bool tcp;
	dns_send *send;
	void *ctx;
	struct udp_peer peer; /* len 0: tcp */
};

struct outcome {
	enum dns_rcode rcode;
	enum dns_ede ede;
	const char *text; /* of the extended error */
	const char *word; /* for the trace */
	struct ip addr;	  /* or len 0 */
	const char *ptr;  /* or NULL */
};

static const char *type_name(uint16_t type, char out[16])
{
	static const struct {
		uint16_t type;
		const char *name;
	} names[] = {
		{ DNS_A, "A" },		{ DNS_AAAA, "AAAA" }, { DNS_PTR, "PTR" },
		{ DNS_HTTPS, "HTTPS" }, { DNS_SVCB, "SVCB" }, { DNS_TXT, "TXT" },
		{ DNS_MX, "MX" },	{ DNS_SRV, "SRV" },   { DNS_NS, "NS" },
		{ DNS_CNAME, "CNAME" }, { DNS_SOA, "SOA" },   { DNS_ANY, "ANY" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].type == type)
			return names[i].name;
	(void)snprintf(out, 16, "TYPE%u", type);
	return out;
}

/* Bound the events, so that a flood of queries does not fill the trace. */
static bool may_tell(struct gateway *g)
{
	uint64_t now = clock_mono_ns();
	size_t at;

	if (bucket_ready(&g->dns_events, now) < 1) {
		g->dns_untold++;
		return false;
	}
	bucket_take(&g->dns_events, 1, now);
	if (g->dns_untold && event_begin(g, GW_KIND_GAP, 0, NULL, &at) == 0) {
		event_num(g, GW_T_COUNT, g->dns_untold);
		g->dns_untold = 0;
		event_end(g, at, EVENT_SOON);
	}
	return true;
}

static void tell(struct gateway *g, const struct dns_query *q, const struct sockdiag_owner *owner,
		 const struct outcome *o, struct str rule)
{
	struct subject s = { .owner = owner, .name = str_of(q->name), .rule = rule };
	char type[16], ip[IP_TEXT];
	size_t at;

	if (!may_tell(g) || event_begin(g, GW_KIND_DNS, 0, &s, &at) < 0)
		return;
	event_text(g, GW_T_TYPE, str_of(type_name(q->type, type)));
	if (o->addr.len)
		ip_text(&o->addr, ip);
	event_text(g, GW_T_ANSWER, str_of(o->addr.len ? ip : o->word));
	event_end(g, at, EVENT_SOON);
}

static void tell_denied(struct gateway *g, const struct dns_query *q,
			const struct sockdiag_owner *owner, const struct policy_query *pq,
			const struct policy_verdict *v)
{
	struct subject s = { .owner = owner, .name = str_of(q->name), .rule = policy_rule_id(v) };
	char fix[POLICY_FIX];
	size_t at;

	if (!may_tell(g) || event_begin(g, GW_KIND_DENY, 0, &s, &at) < 0)
		return;
	policy_fix(pq, v, fix);
	event_text(g, GW_T_PROTO, STR("dns"));
	event_text(g, GW_T_REASON, str_of(policy_reason_name(v->reason)));
	event_text(g, GW_T_WHY, str_of(policy_reason_text(v->reason)));
	event_text(g, GW_T_FIX, str_of(fix));
	event_end(g, at, EVENT_NOW);
}

static void reply(const struct dns_query *q, bool tcp, const struct outcome *o, dns_send *send,
		  void *ctx, const struct udp_peer *peer)
{
	uint8_t out[DNS_UDP_MAX];
	struct dns_reply r;
	size_t n;

	dns_reply_begin(&r, q, out, tcp ? sizeof out : q->udp_size);
	if (o->addr.len)
		dns_reply_ip(&r, &o->addr, TTL_S);
	if (o->ptr)
		dns_reply_ptr(&r, o->ptr, TTL_S);
	n = dns_reply_end(&r, o->rcode, o->ede, str_of(o->text));
	if (peer && peer->len)
		(void)sendto(peer->fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL,
			     (const void *)&peer->addr, peer->len);
	else
		send(ctx, (struct str){ (char *)out, n });
}

static struct outcome known(struct gateway *g, const struct dns_query *q)
{
	struct outcome o = { .ede = DNS_EDE_NONE, .word = "none" };
	struct ip ip4, ip6;

	if (q->type != DNS_A && q->type != DNS_AAAA)
		return o;
	if (addresses_give(g->addresses, q->name, &ip4, &ip6) < 0)
		return (struct outcome){ .rcode = DNS_SERVFAIL,
					 .ede = DNS_EDE_NONE,
					 .word = "failed" };
	if (q->type == DNS_A)
		o.addr = ip4;
	else if (g->fds[SOCK_TCP6] >= 0)
		o.addr = ip6;
	return o;
}

static struct outcome unknown(int status)
{
	if (status == -ENOENT)
		return (struct outcome){ .rcode = DNS_NXDOMAIN,
					 .ede = DNS_EDE_NONE,
					 .word = "no such name" };
	return (struct outcome){
		.rcode = DNS_SERVFAIL,
		.ede = status == -ETIMEDOUT ? DNS_EDE_NO_REACHABLE : DNS_EDE_NETWORK,
		.text = "the host's nameservers gave no answer",
		.word = "no answer",
	};
}

static struct str rule_of(struct gateway *g, const char *name)
{
	struct policy_query pq = { .name = str_of(name) };
	struct policy_verdict v;

	policy_decide(g->policy, &pq, &v);
	return v.rule ? v.rule->id : STR_NONE;
}

static void pending_free(struct dns_pending *p)
{
	p->g->queries[p->slot] = NULL;
	p->g->nqueries--;
	free(p);
}

void dns_cancel(struct dns_pending *p)
{
	ask_cancel(p->g, LIMIT_NET_FLOWS + p->slot, &p->asked);
	pending_free(p);
}

static int status_of(const struct dial_answer *a)
{
	return a->outcome == DIAL_DONE ? 0 : a->outcome == DIAL_FAILED ? -a->err : -EBUSY;
}

void dns_answered(struct gateway *g, const struct dial_answer *a)
{
	struct dns_pending *p = g->queries[a->slot - LIMIT_NET_FLOWS];
	struct outcome o;

	if (!p || p->asked != a->serial)
		return; /* it was cancelled */
	o = status_of(a) == 0 ? known(g, &p->q) : unknown(status_of(a));
	tell(g, &p->q, &p->owner, &o, rule_of(g, p->q.name));
	reply(&p->q, p->tcp, &o, p->send, p->ctx, &p->peer);
	pending_free(p);
}

/* Answer without asking a name server. False if one must be asked. */
static bool answer_now(struct gateway *g, const struct dns_query *q,
		       const struct sockdiag_owner *owner, struct outcome *o)
{
	struct policy_query pq = { .name = str_of(q->name) };
	struct policy_verdict v;
	struct ip ip;

	*o = (struct outcome){ .ede = DNS_EDE_NONE, .word = "none" };
	if (q->type == DNS_PTR && q->name[0] && dns_reverse(q->name, &ip) == 0) {
		o->ptr = addresses_find(g->addresses, &ip);
		o->rcode = o->ptr ? DNS_OK : DNS_NXDOMAIN;
		o->word = o->ptr ? o->ptr : "no such name";
		return true;
	}
	if (!q->name[0]) {
		*o = (struct outcome){ .rcode = DNS_REFUSED,
				       .ede = DNS_EDE_PROHIBITED,
				       .text = "not a host name",
				       .word = "refused" };
		return true;
	}
	policy_decide(g->policy, &pq, &v);
	if (v.kind == POLICY_DENY) {
		tell_denied(g, q, owner, &pq, &v);
		*o = (struct outcome){ .rcode = DNS_NXDOMAIN,
				       .ede = DNS_EDE_BLOCKED,
				       .text = policy_reason_text(v.reason) };
		return true;
	}
	if (q->type == DNS_A || q->type == DNS_AAAA)
		return false;
	*o = known(g, q);
	return true;
}

static struct dns_pending *pending_new(struct gateway *g, const struct dns_query *q, bool tcp,
				       const struct sockdiag_owner *owner, dns_send *send,
				       void *ctx, const struct udp_peer *peer)
{
	struct dns_pending *p = g->nqueries < LIMIT_NET_QUERIES ? calloc(1, sizeof *p) : NULL;
	uint32_t slot = 0;

	if (!p)
		return NULL;
	while (g->queries[slot])
		slot++;
	g->nqueries++;
	*p = (struct dns_pending){
		.g = g, .slot = slot, .q = *q, .tcp = tcp, .send = send, .ctx = ctx
	};
	g->queries[slot] = p;
	if (owner)
		p->owner = *owner;
	if (peer)
		p->peer = *peer;
	return p;
}

/* Frees p on failure. */
static int look_up(struct dns_pending *p)
{
	struct dial_ask a = { .kind = DIAL_ASK_RESOLVE, .slot = LIMIT_NET_FLOWS + p->slot };
	int r;

	(void)str_copy(a.name, sizeof a.name, str_of(p->q.name));
	r = ask_send(p->g, &a, &p->asked);
	if (r < 0)
		pending_free(p);
	return r;
}

static int ask(struct gateway *g, struct str msg, bool tcp, const struct sockdiag_owner *owner,
	       dns_send *send, void *ctx, const struct udp_peer *peer, struct dns_pending **ret)
{
	static const struct outcome busy = { .rcode = DNS_SERVFAIL,
					     .ede = DNS_EDE_NOT_READY,
					     .text = "too many queries" };
	struct outcome o = { .ede = DNS_EDE_NONE };
	struct dns_pending *p;
	struct dns_query q;
	int r = dns_query_parse(msg, &q);

	*ret = NULL;
	if (r < 0)
		return r;
	o.rcode = (enum dns_rcode)r;
	if (r == 0 && meter_dns(&g->total, clock_mono_ns()) != METER_OK) {
		o = busy;
	} else if (r == 0 && !answer_now(g, &q, owner, &o)) {
		p = pending_new(g, &q, tcp, owner, send, ctx, peer);
		if (p && look_up(p) == 0) {
			*ret = p;
			return 0;
		}
		o = busy;
	} else if (r == 0 && o.word) {
		tell(g, &q, owner, &o, q.name[0] ? rule_of(g, q.name) : STR_NONE);
	}
	reply(&q, tcp, &o, send, ctx, peer);
	return 0;
}

int dns_ask(struct gateway *g, struct str msg, bool tcp, const struct sockdiag_owner *owner,
	    dns_send *send, void *ctx, struct dns_pending **ret)
{
	return ask(g, msg, tcp, owner, send, ctx, NULL, ret);
}

static void on_datagrams(struct loop_io *io, uint32_t events)
{
	struct inlet *in = container_of(io, struct inlet, io);
	struct gateway *g = in->g;
	char msg[DNS_UDP_MAX];

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		struct udp_peer peer = { .fd = io->fd, .len = sizeof peer.addr };
		ssize_t n = recvfrom(io->fd, msg, sizeof msg, MSG_DONTWAIT, (void *)&peer.addr,
				     &peer.len);
		struct sockdiag_owner owner;
		struct dns_pending *p;
		struct target from, self = { .port = NETPLAN_PORT_DNS };

		if (n < 0)
			return;
		self.ip = gateway_ip(in->family);
		from.ip = ip_of_sockaddr((void *)&peer.addr, &from.port);
		owner = whose(g, IPPROTO_UDP, &from, &self);
		(void)ask(g, (struct str){ msg, (size_t)n }, false, &owner, NULL, NULL, &peer, &p);
	}
}

int dns_begin(struct gateway *g)
{
	int r = 0;

	bucket_init(&g->dns_events, EVENTS_A_S, EVENTS_A_S, clock_mono_ns());
	for (int i = 0; i < 2 && r == 0; i++) {
		int fd = g->fds[i ? SOCK_UDP6 : SOCK_UDP4];

		g->udp[i] = (struct inlet){ .g = g, .family = i ? AF_INET6 : AF_INET };
		if (fd >= 0)
			r = loop_add(&g->loop, &g->udp[i].io, fd, EPOLLIN, on_datagrams);
	}
	return r;
}
