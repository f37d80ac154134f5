/* SPDX-License-Identifier: Apache-2.0 */
/* From an allowed name or address to an established connection. */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "gateway/dial.h"
#include "gateway/dialer.h"
#include "sys/net/route.h"

enum { DIAL_MS = 5000, TICK_MS = 100 };

/* Where the kernel does not say, it may be. To what has no route nothing can be sent anyway. */
static bool may_be_local(struct dialer *d, const struct ip *ip)
{
	int r = route_is_local(d->route_fd, ip->b, ip->len);

	return r != 0 && r != -ENETUNREACH && r != -EHOSTUNREACH;
}

/* --- time --- */

static void on_timeout(struct dialling *a)
{
	dialling_stop(a);
	a->err = ETIMEDOUT;
	if (a->via) {
		dialling_fail(a, ETIMEDOUT);
		return;
	}
	a->at++;
	dialling_next(a);
}

static void on_tick(struct loop_timer *t)
{
	struct dialer *d = container_of(t, struct dialer, tick);
	uint64_t now = clock_mono_ns();

	for (uint32_t i = 0; i < d->top; i++)
		if (d->asks[i] && d->asks[i]->deadline_ns && d->asks[i]->deadline_ns <= now)
			on_timeout(d->asks[i]);
	if (d->nasks)
		loop_timer_set(&d->loop, &d->tick, TICK_MS * NS_PER_MS, on_tick);
}

void dialling_deadline(struct dialling *a, uint64_t ms)
{
	struct dialer *d = a->d;

	a->deadline_ns = ms ? clock_mono_ns() + ms * NS_PER_MS : 0;
	if (ms && !d->tick.at_ns)
		loop_timer_set(&d->loop, &d->tick, TICK_MS * NS_PER_MS, on_tick);
}

void dialling_stop(struct dialling *a)
{
	resolve_cancel(&a->wait);
	loop_del(&a->d->loop, &a->io);
	fd_close(&a->fd);
	a->deadline_ns = 0;
}

/* --- limits --- */

bool dialling_count_total(struct dialling *a)
{
	enum meter_hit hit =
		a->counted_total ? METER_OK : meter_open(&a->d->total, clock_mono_ns());

	if (hit != METER_OK) {
		dialling_limit(a, hit);
		return false;
	}
	a->counted_total = true;
	return true;
}

bool dialling_count(struct dialling *a, const struct policy_rule *rule)
{
	/* The rules of another policy are gone, even if this one is at the same place. */
	bool same =
		a->counted && a->counted_rule == rule && a->counted_policy == a->d->policy_number;
	struct dialer *d = a->d;
	struct meter *m = same ? NULL : meters_find(d->meters, d->policy, rule);
	enum meter_hit hit;

	if (!dialling_count_total(a))
		return false;
	hit = m ? meter_open(m, clock_mono_ns()) : METER_OK;
	if (hit != METER_OK) {
		if (!a->counted)
			meter_undo(&d->total);
		dialling_limit(a, hit);
		return false;
	}
	a->counted = true;
	a->counted_rule = rule;
	a->counted_policy = a->d->policy_number;
	return true;
}

/* --- one address after the other --- */

static void connected(struct dialling *a)
{
	if (a->via && a->via_step == 0)
		dialling_via_greet(a);
	else
		dialling_give(a);
}

static void on_connect(struct loop_io *io, uint32_t events)
{
	struct dialling *a = container_of(io, struct dialling, io);
	int r = dial_finish(a->fd);

	(void)events;
	if (r == 0) {
		connected(a);
		return;
	}
	dialling_stop(a);
	a->err = -r;
	a->at++;
	if (a->via)
		dialling_fail(a, a->err);
	else
		dialling_next(a);
}

int dialling_start(struct dialling *a, const struct ip *ip, uint16_t port)
{
	bool open = false;
	int r = dial_start(ip, port, &open);

	if (r < 0) {
		a->err = -r;
		return -1;
	}
	a->fd = r;
	if (open) { /* near by: no need to wait for the news of it */
		connected(a);
		return 0;
	}
	r = loop_add(&a->d->loop, &a->io, a->fd, EPOLLOUT, on_connect);
	if (r < 0) {
		dialling_stop(a);
		a->err = -r;
		return -1;
	}
	dialling_deadline(a, a->via ? DIALLING_VIA_MS : DIAL_MS);
	return 0;
}

void dialling_next(struct dialling *a)
{
	struct dialer *d = a->d;
	struct policy_verdict v;
	struct policy_query q;

	for (; a->at < a->addrs.n; a->at++) {
		dialling_query(a, &q);
		q.addr = ip_plain(a->addrs.addrs[a->at]);
		a->answer.local = may_be_local(d, &q.addr);
		dial_verdict(d->policy, &q, a->answer.local, &v);
		if (v.kind == POLICY_DENY) {
			a->denied = true;
			a->reason = v.reason;
			continue;
		}
		a->answer.addr = q.addr;
		if (!dialling_count(a, v.rule))
			return;
		if (dialling_start(a, &q.addr, a->ask.port) == 0)
			return;
	}
	a->answer.addr = a->addrs.addrs[0];
	if (a->denied && !a->err)
		dialling_deny(a, a->reason);
	else
		dialling_fail(a, a->err ? a->err : EHOSTUNREACH);
}

/* A policy that came meanwhile may have forbidden it. */
static bool still_allowed(struct dialling *a)
{
	struct dialer *d = a->d;
	struct policy_verdict v;
	struct policy_query q;

	if (a->policy_number == d->policy_number)
		return true;
	dialling_query(a, &q);
	q.addr = a->answer.addr;
	if (a->via)
		policy_decide(d->policy, &q, &v);
	else
		dial_verdict(d->policy, &q, a->answer.local, &v);
	a->reason = v.reason;
	return v.kind != POLICY_DENY;
}

void dialling_give(struct dialling *a)
{
	struct dialling told = *a;

	if (!still_allowed(a)) {
		dialling_deny(a, a->reason);
		return;
	}
	dialling_done(a); /* first: the client waits for it */
	dialer_report(&told, NULL);
}
