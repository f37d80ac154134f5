/* SPDX-License-Identifier: Apache-2.0 */
/* From an allowed target to an open connection. */
#include <errno.h>
#include <sys/socket.h>

#include "gateway/dial.h"
#include "gateway/flow.h"

enum { DIAL_MS = 5000 };

void flow_tell_connected(struct flow *f)
{
	struct gateway *g = f->g;
	struct subject s;
	size_t at;

	if (!f->open || f->told)
		return;
	flow_subject(f, &s);
	f->told = true;
	if (event_begin(g, GW_KIND_CONNECT, f->slot, &s, &at) < 0)
		return;
	if (f->looked)
		event_text(g, GW_T_PROTO, str_of(policy_proto_name(f->proto)));
	event_end(g, at, EVENT_SOON);
	flow_tell_tls(f);
}

void flow_tell_tls(struct flow *f)
{
	struct gateway *g = f->g;
	size_t at;

	if (!f->hello || !f->looked || f->tls_told)
		return;
	flow_tell_connected(f);
	if (f->tls_told || event_begin(g, GW_KIND_TLS, f->slot,
				       &(struct subject){ .owner = flow_owner(f) }, &at) < 0)
		return;
	f->tls_told = true;
	event_text(g, GW_T_SNI, str_of(f->hello->sni));
	event_text(g, GW_T_ALPN, str_of(f->hello->alpn));
	event_text(g, GW_T_VERSION, str_of(tls_version_text(f->hello->version)));
	event_end(g, at, EVENT_SOON);
}

/* The first bytes go before anything is told of it: the client waits for them. */
void flow_opened(struct flow *f)
{
	struct gateway *g = f->g;
	uint32_t slot = f->slot;

	flow_deadline(f, 0);
	f->open = true;
	if (f->silent) {
		flow_tell_connected(f);
		f->looked = false;
		f->sniff = true;
	}
	f->state = FLOW_PASS;
	f->side[UP].ready = true; /* most clients have spoken by now */
	f->via_step = 0;
	if (flow_front_opened(f) < 0) {
		flow_end(f, "reset by the client", true);
		return;
	}
	if (f->http)
		flow_http(f);
	else
		flow_pass(f);
	if (g->flows[slot] != f)
		return;
	flow_tell_connected(f);
	dial_keep(f->side[DOWN].fd);
}

bool flow_dial_count(struct flow *f)
{
	struct meter *m = meter_of(f->g, f->rule);
	uint64_t now = clock_mono_ns();
	enum meter_hit hit = meter_open(&f->g->total, now);

	if (hit == METER_OK && m) {
		hit = meter_open(m, now);
		if (hit != METER_OK)
			meter_close(&f->g->total);
	}
	f->counted = hit == METER_OK;
	if (hit != METER_OK)
		flow_deny_limit(f, f->rule, hit); /* f may be gone */
	return hit == METER_OK;
}

bool flow_dial_recount(struct flow *f, const struct policy_rule *rule)
{
	struct meter *was = meter_of(f->g, f->rule), *is = meter_of(f->g, rule);
	enum meter_hit hit;

	if (!rule || rule == f->rule)
		return true;
	if (f->counted) {
		hit = is ? meter_open(is, clock_mono_ns()) : METER_OK;
		if (hit != METER_OK) {
			flow_deny_limit(f, rule, hit);
			return false;
		}
		if (was)
			meter_close(was);
	}
	f->rule = rule;
	return true;
}

static void connected(struct flow *f)
{
	if (!f->via) {
		flow_opened(f);
		return;
	}
	flow_via_greet(f);
}

int flow_dial_start(struct flow *f, const struct ip *ip, uint16_t port)
{
	struct side *s = &f->side[DOWN];
	bool open = false;

	loop_del(&f->g->loop, &s->io);
	fd_close(&s->fd);
	s->fd = dial_start(ip, port, &open);
	if (s->fd < 0) {
		f->dial_err = -s->fd;
		s->fd = FD_NONE;
		return -1;
	}
	flow_fit_buffers(f->g, s->fd);
	(void)flow_owner(f); /* while the other end is busy: a short one is soon gone */
	f->state = FLOW_DIAL;
	if (open) { /* near by: no need to wait for the news of it */
		connected(f);
		return 0;
	}
	flow_deadline(f, f->via ? FLOW_VIA_MS : DIAL_MS);
	flow_watch(f);
	return 0;
}

void flow_dial(struct flow *f)
{
	struct policy_query q;
	struct policy_verdict v, denied = { .kind = POLICY_ALLOW };

	if (f->via) {
		flow_via_dial(f);
		return;
	}
	for (; f->at < f->addrs.n; f->at++) {
		flow_query(f, &q);
		q.addr = f->addrs.addrs[f->at];
		dial_allowed(f->g, &q, &v);
		if (v.kind == POLICY_DENY) {
			denied = v;
			continue;
		}
		f->rule = v.rule;
		if (!f->counted && !flow_dial_count(f))
			return;
		if (flow_dial_start(f, &q.addr, f->port) == 0)
			return;
	}
	flow_query(f, &q);
	q.addr = f->addrs.addrs[0];
	if (denied.kind == POLICY_DENY && !f->dial_err)
		flow_deny(f, &q, &denied);
	else
		flow_fail(f, f->dial_err ? f->dial_err : EHOSTUNREACH);
}

void flow_dialled(struct flow *f)
{
	struct side *s = &f->side[DOWN];
	socklen_t size = sizeof f->dial_err;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &f->dial_err, &size) < 0)
		f->dial_err = errno;
	if (f->dial_err) {
		f->at++;
		flow_dial(f);
		return;
	}
	connected(f);
}
