/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the dialer to connect to an allowed target, and take over the socket. */
#include <errno.h>
#include <string.h>

#include "gateway/dial.h"
#include "gateway/flow.h"

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

/* Send the first bytes before the event: the client waits for the answer. */
static void opened(struct flow *f)
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
	f->side[UP].ready = true; /* most clients have sent something by now */
	if (flow_front_opened(f) < 0) {
		flow_end(f, "reset by the client", true);
		return;
	}
	if (f->http)
		flow_http(f);
	else
		flow_pass(f);
	if (g->flows[slot] != f || f->state != FLOW_PASS)
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
			meter_undo(&f->g->total);
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

void flow_dial(struct flow *f)
{
	struct dial_ask a = { .kind = DIAL_ASK_DIAL, .slot = f->slot, .port = f->port };
	int r;

	flow_deadline(f, 0);
	if (!f->counted && !flow_dial_count(f))
		return;
	if (f->name)
		(void)str_copy(a.name, sizeof a.name, str_of(f->name));
	else
		a.addr = ip_plain(f->dst);
	a.proto = f->looked ? (uint8_t)f->proto : PROTO_UNKNOWN;
	r = ask_send(f->g, &a, &f->asked);
	if (r < 0) {
		flow_fail(f, -r);
		return;
	}
	f->state = FLOW_DIAL;
	(void)flow_owner(
		f); /* while the dialer works: the owner of a short connection soon exits */
	flow_watch(f);
}

/* Decide again with the address: the front's policy may be newer, and the event needs the rule. */
static void take_connection(struct flow *f, const struct dial_answer *a, int fd)
{
	struct policy_query q;
	struct policy_verdict v;

	f->side[DOWN].fd = fd;
	f->dialled = a->addr;
	f->local = a->local;
	flow_query(f, &q);
	if (a->addr.len) {
		q.addr = a->addr;
		dial_verdict(f->g->policy, &q, f->local, &v);
	} else {
		policy_decide(f->g->policy, &q, &v);
	}
	if (v.kind == POLICY_DENY) {
		flow_deny(f, &q, &v);
		return;
	}
	if (!flow_dial_recount(f, v.rule))
		return;
	flow_fit_buffers(f->g, fd);
	opened(f);
}

static void take_denial(struct flow *f, const struct dial_answer *a)
{
	struct policy_query q;
	struct policy_verdict v;

	flow_query(f, &q);
	if (a->addr.len)
		q.addr = a->addr;
	policy_decide(f->g->policy, &q, &v);
	if (v.kind != POLICY_DENY || v.reason != (enum policy_reason)a->detail)
		v = (struct policy_verdict){ .kind = POLICY_DENY,
					     .reason = (enum policy_reason)a->detail };
	flow_deny(f, &q, &v);
}

void flow_answered(struct flow *f, const struct dial_answer *a, int fd)
{
	auto_close int owned = fd;

	switch (a->outcome) {
	case DIAL_DONE:
		if (owned < 0) /* the front had no free descriptor */
			flow_fail(f, EMFILE);
		else
			take_connection(f, a, TAKE_FD(owned));
		break;
	case DIAL_FAILED:
		flow_fail(f, a->err);
		break;
	case DIAL_DENIED:
		take_denial(f, a);
		break;
	case DIAL_LIMITED:
		flow_deny_limit(f, f->rule, (enum meter_hit)a->detail);
		break;
	}
}
