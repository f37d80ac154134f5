/* SPDX-License-Identifier: Apache-2.0 */
/* End a connection that the policy denies or whose target is unreachable. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "gateway/refusal.h"

enum { LAST_MS = 2 * 1000 };

void flow_tell_failed(struct flow *f, const char *reason)
{
	struct subject s;
	size_t at;

	f->refused = true;
	flow_subject(f, &s);
	if (event_begin(f->g, GW_KIND_FAIL, f->slot, &s, &at) < 0)
		return;
	event_text(f->g, GW_T_REASON, str_of(reason));
	event_end(f->g, at, EVENT_NOW);
}

void flow_last_words(struct flow *f, struct str words)
{
	struct side *s = &f->side[UP];

	/* A short text into an empty socket buffer: it fits, or the client is gone. */
	(void)send(s->fd, words.p, words.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(s->fd, SHUT_WR);
	ask_cancel(f->g, f->slot, &f->asked);
	loop_del(&f->g->loop, &f->side[DOWN].io);
	flow_close_reset(&f->side[DOWN].fd);
	flow_await_more(s, 0);
	f->state = FLOW_LAST;
	flow_deadline(f, LAST_MS);
	flow_watch(f);
}

static void tell_denied(struct flow *f, const struct refusal *r)
{
	struct gateway *g = f->g;
	struct subject s;
	size_t at;

	f->refused = true;
	flow_tell_connected(f);
	flow_subject(f, &s);
	s.rule = r->rule;
	if (event_begin(g, GW_KIND_DENY, f->slot, &s, &at) < 0)
		return;
	if (f->looked)
		event_text(g, GW_T_PROTO, str_of(policy_proto_name(f->proto)));
	event_text(g, GW_T_REASON, str_of(r->reason));
	event_text(g, GW_T_WHY, str_of(r->why));
	event_text(g, GW_T_FIX, str_of(r->fix));
	event_text(g, GW_T_METHOD, r->method);
	event_text(g, GW_T_PATH, r->path);
	if (f->hello && f->looked)
		event_text(g, GW_T_SNI, str_of(f->hello->sni));
	event_end(g, at, EVENT_NOW);
}

/* Answer in the client's protocol if possible, else reset the connection. */
static void refuse(struct flow *f, const struct refusal *r, int status)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);
	bool midway =
		f->http && f->http->n; /* an answer is in progress: another would corrupt it */

	tell_denied(f, r);
	if (f->front == FRONT_SOCKS && f->state < FLOW_PASS) {
		static const char no[] = { 5, 2, 0, 1, 0, 0, 0, 0, 0, 0 };

		flow_last_words(f, (struct str){ no, sizeof no });
		return;
	}
	if (!midway && (f->http || (f->front == FRONT_HTTP && f->state < FLOW_PASS)) &&
	    refusal_answer(r, status, &b) == 0) {
		flow_last_words(f, buf_str(&b));
		return;
	}
	flow_end(f, "refused", true);
}

void flow_deny(struct flow *f, const struct policy_query *q, const struct policy_verdict *v)
{
	char target[HOST_TEXT + 8], ip[IP_TEXT] = "", fix[POLICY_FIX];
	struct refusal r = {
		.rule = policy_rule_id(v),
		.reason = policy_reason_name(v->reason),
		.why = policy_reason_text(v->reason),
		.fix = fix,
		.target = target,
		.method = q->method,
		.path = q->path,
	};

	policy_fix(q, v, fix);
	if (!f->name)
		ip_text(&f->dst, ip);
	(void)snprintf(target, sizeof target, "%s:%u", f->name ? f->name : ip, f->port);
	refuse(f, &r, 403);
}

void flow_deny_limit(struct flow *f, const struct policy_rule *rule, enum meter_hit hit)
{
	char target[HOST_TEXT + 8];
	struct refusal r = {
		.rule = rule ? rule->id : STR("default"),
		.reason = meter_hit_name(hit),
		.why = "a limit of the policy is reached",
		.fix = "",
		.target = target,
	};

	(void)snprintf(target, sizeof target, "%s:%u", f->name ? f->name : "", f->port);
	refuse(f, &r, 429);
}

void flow_refuse_http(struct flow *f, int status, const char *why)
{
	struct refusal r = {
		.rule = STR_NONE,
		.reason = "malformed",
		.why = why,
		.fix = "",
		.target = f->name,
	};

	refuse(f, &r, status);
}

static const char *fail_name(int err)
{
	switch (err) {
	case ENOENT:
		return "no such name";
	case ECONNREFUSED:
		return "refused";
	case EACCES:
		return "the host's proxy wants another user and password";
	case ETIMEDOUT:
		return "timeout";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "unreachable";
	default:
		return "failed";
	}
}

void flow_fail(struct flow *f, int err)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct refusal r = { .reason = fail_name(err),
			     .why = "the target cannot be reached",
			     .fix = "",
			     .target = f->name };

	flow_tell_failed(f, r.reason);
	if (f->front == FRONT_SOCKS) {
		char no[] = { 5, 1, 0, 1, 0, 0, 0, 0, 0, 0 };

		no[1] = err == ECONNREFUSED ? 5 : err == ENOENT ? 4 : 1;
		flow_last_words(f, (struct str){ no, sizeof no });
	} else if ((f->front == FRONT_HTTP || f->http) && refusal_answer(&r, 502, &b) == 0) {
		flow_last_words(f, buf_str(&b));
	} else {
		flow_end(f, "failed", true);
	}
}
