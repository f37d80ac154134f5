/* SPDX-License-Identifier: Apache-2.0 */
/* Read the front's asks, decide them by name and port, answer them. */
#include "gateway/dialer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/process/fdpass.h"

enum {
	BATCH = 64,	   /* asks per turn; the rest waits in the socket */
	RETRY_MS = 5,	   /* after ETOOMANYREFS: too many descriptors of this user are in flight */
	REFUSALS_A_S = 50, /* reports per second; further refusals are only counted */
};

void dialling_query(const struct dialling *a, struct policy_query *q)
{
	*q = (struct policy_query){ .name = str_of(a->ask.name), .port = a->ask.port };
	if (a->ask.addr.len)
		q->addr = ip_plain(a->ask.addr);
	q->proto = (enum policy_proto)a->ask.proto;
	/* The front compares the name in the TLS hello. Here some name must be possible. */
	q->has_sni = true;
	q->sni = q->name;
	/* The front handles unreadable first bytes. Here the client may still be silent. */
	q->silent = true;
}

static void forget(struct dialling *a)
{
	struct dialer *d = a->d;

	dialling_stop(a);
	for (struct dialling **at = &d->to_send; a->answered && *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			if (d->to_send_end == &a->next)
				d->to_send_end = at;
			break;
		}
	d->asks[a->ask.slot] = NULL;
	d->nasks--;
	free(a);
}

/* --- answers --- */

static void send_answers(struct dialer *d);

static void on_retry(struct loop_timer *t)
{
	send_answers(container_of(t, struct dialer, retry));
}

static int send_answer(struct dialer *d, const struct dialling *a)
{
	uint8_t packet[DIAL_ANSWER_SIZE];
	bool gives = a->answer.outcome == DIAL_DONE && a->fd >= 0;

	dial_answer_write(&a->answer, packet);
	return fdpass_try(d->front_fd, packet, sizeof packet, gives ? &a->fd : NULL, gives);
}

static void send_answers(struct dialer *d)
{
	while (d->to_send) {
		int r = send_answer(d, d->to_send);

		if (r == -EAGAIN)
			break;
		if (r == -ETOOMANYREFS || r == -ENOBUFS || r == -ENOMEM) {
			loop_timer_set(&d->loop, &d->retry, RETRY_MS * NS_PER_MS, on_retry);
			break;
		}
		forget(d->to_send); /* it was sent, or the front ended */
	}
	dialer_watch(d);
}

void dialer_watch(struct dialer *d)
{
	uint32_t events = (d->held ? 0 : EPOLLIN) | (d->to_send && !d->retry.at_ns ? EPOLLOUT : 0);

	if (d->front.fn && d->front.fd >= 0)
		(void)loop_mod(&d->loop, &d->front, events ? events : EPOLLET);
}

static void answer(struct dialling *a, enum dial_outcome outcome)
{
	struct dialer *d = a->d;

	if (outcome != DIAL_DONE)
		dialling_stop(a);
	loop_del(&d->loop, &a->io);
	dialling_deadline(a, 0);
	a->answer.outcome = outcome;
	a->answer.slot = a->ask.slot;
	a->answer.serial = a->ask.serial;
	a->answered = true;
	a->next = NULL;
	*d->to_send_end = a;
	d->to_send_end = &a->next;
	if (d->to_send == a)
		send_answers(d);
}

void dialling_done(struct dialling *a)
{
	answer(a, DIAL_DONE);
}

void dialling_fail(struct dialling *a, int err)
{
	a->answer.err = err > 0 ? err : EIO;
	answer(a, DIAL_FAILED);
}

void dialling_deny(struct dialling *a, enum policy_reason reason)
{
	a->answer.detail = (uint8_t)reason;
	dialer_report(a, policy_reason_name(reason));
	answer(a, DIAL_DENIED);
}

void dialling_limit(struct dialling *a, enum meter_hit hit)
{
	a->answer.detail = (uint8_t)hit;
	dialer_report(a, meter_hit_name(hit));
	answer(a, DIAL_LIMITED);
}

/* --- asks --- */

static void on_resolved(struct resolve_wait *w, const struct resolve_answer *answer)
{
	struct dialling *a = container_of(w, struct dialling, wait);

	a->addrs = *answer;
	if (answer->status < 0)
		dialling_fail(a, -answer->status);
	else if (a->ask.kind == DIAL_ASK_RESOLVE)
		dialling_done(a);
	else
		dialling_next(a);
}

static void look_up(struct dialling *a)
{
	int r = resolve(a->d->resolver, a->ask.name, &a->wait, on_resolved);

	if (r < 0)
		dialling_fail(a, -r);
}

static void begin(struct dialling *a)
{
	struct dialer *d = a->d;
	struct policy_verdict v;
	struct policy_query q;

	dialling_query(a, &q);
	policy_decide(d->policy, &q, &v);
	a->policy_number = d->policy_number;
	a->via = a->ask.name[0] && via_wanted(&d->via, a->ask.name);
	if (v.kind == POLICY_DENY) {
		dialling_deny(a, v.reason);
	} else if (a->ask.kind == DIAL_ASK_RESOLVE) {
		if (meter_dns(&d->total, clock_mono_ns()) != METER_OK)
			dialling_limit(a, METER_RATE);
		else if (a->via) /* the proxy resolves it */
			dialling_done(a);
		else
			look_up(a);
	} else if (a->via) {
		if (dialling_count(a, v.rule))
			dialling_via(a);
	} else if (a->ask.name[0]) {
		/*
		 * Before the lookup: even a failing lookup sends the name to a name server. If the
		 * rule depends on the address, only the sandbox's limits count yet.
		 */
		if (v.kind == POLICY_ALLOW ? dialling_count(a, v.rule) : dialling_count_total(a))
			look_up(a);
	} else {
		a->addrs = (struct resolve_answer){ .n = 1, .addrs = { ip_plain(a->ask.addr) } };
		dialling_next(a);
	}
}

static int take_ask(struct dialer *d, const struct dial_ask *ask)
{
	struct dialling *a = d->asks[ask->slot];

	if (ask->kind == DIAL_ASK_CANCEL) {
		if (a && a->ask.serial == ask->serial)
			forget(a);
		return 0;
	}
	if (a)
		return -EBADMSG;
	a = calloc(1, sizeof *a);
	if (!a)
		return -ENOMEM;
	a->d = d;
	a->ask = *ask;
	a->fd = FD_NONE;
	d->asks[ask->slot] = a;
	d->nasks++;
	if (d->top <= ask->slot)
		d->top = ask->slot + 1;
	begin(a);
	return 0;
}

static void on_front(struct loop_io *io, uint32_t events)
{
	struct dialer *d = container_of(io, struct dialer, front);
	char packet[DIAL_ASK_SIZE + 1]; /* one byte more, to detect a longer packet */
	struct dial_ask ask;

	if (events & EPOLLOUT)
		send_answers(d);
	for (int i = 0; i < BATCH && !d->held; i++) {
		ssize_t n = recv(d->front_fd, packet, sizeof packet, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) { /* the warden ends the dialer too */
			loop_del(&d->loop, &d->front);
			return;
		}
		if (dial_ask_read((struct str){ packet, (size_t)n }, &ask) < 0 ||
		    take_ask(d, &ask) < 0) {
			dialer_report_broken(d);
			d->broken = true;
			loop_stop(&d->loop);
			return;
		}
	}
}

int dialer_serve(struct dialer *d)
{
	return loop_add(&d->loop, &d->front, d->front_fd, EPOLLIN, on_front);
}

int dialer_begin(struct dialer *d, int warden_fd, int front_fd, int route_fd)
{
	int r = loop_init(&d->loop);

	d->front_fd = front_fd;
	d->route_fd = route_fd;
	d->to_send_end = &d->to_send;
	bucket_init(&d->refusals, REFUSALS_A_S, REFUSALS_A_S, clock_mono_ns());
	return r < 0 ? r : dialer_control_begin(d, warden_fd);
}
