/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer's stream to the warden: configuration and policies come, reports go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/dialer.h"

enum { LAST_WORDS_MS = 200 };

/* --- reports --- */

static void push(struct loop *l)
{
	struct dialer *d = container_of(l, struct dialer, loop);

	conn_push(&d->warden);
	if (conn_backlog(&d->warden) > LIMIT_CONN_HIGH) {
		d->held = true;
		dialer_watch(d);
	}
}

static void on_drained(struct conn *c)
{
	struct dialer *d = container_of(c, struct dialer, warden);

	d->held = false;
	dialer_watch(d);
}

/* Not more refusals than a trace can take: a flood of asks is one number. */
static bool may_report_refusal(struct dialer *d)
{
	uint64_t now = clock_mono_ns();

	if (bucket_ready(&d->refusals, now) < 1) {
		d->unreported++;
		return false;
	}
	bucket_take(&d->refusals, 1, now);
	return true;
}

static struct str rule_of(const struct dialling *a)
{
	struct policy_verdict v;
	struct policy_query q;

	dialling_query(a, &q);
	if (a->answer.addr.len)
		q.addr = a->answer.addr;
	policy_decide(a->d->policy, &q, &v);
	return v.rule ? v.rule->id : STR_NONE;
}

static void put_text(struct dialer *d, uint16_t tag, struct str text)
{
	if (text.n)
		(void)field_put(&d->warden.out, tag, text);
}

/*
 * A connection is reported with the next one, or after 5 ms: waking the warden now would take time
 * from those that the client waits for. A refusal is reported as soon as nothing else is to do.
 */
static void end_report(struct dialer *d, size_t at, bool soon)
{
	if (d->unreported)
		(void)field_put_u64(&d->warden.out, GW_T_COUNT, d->unreported);
	d->unreported = 0;
	(void)conn_end_later(&d->warden, at);
	if (soon || conn_backlog(&d->warden) > LIMIT_CONN_HIGH)
		d->loop.chores = true;
}

void dialer_report(const struct dialling *a, const char *refused)
{
	struct dialer *d = a->d;
	char ip[IP_TEXT] = "";
	size_t at;

	if (refused && !may_report_refusal(d))
		return;
	if (conn_begin(&d->warden, GW_EVENT, 0, &at) < 0)
		return;
	if (a->answer.addr.len)
		ip_text(&a->answer.addr, ip);
	else if (a->ask.addr.len)
		ip_text(&a->ask.addr, ip);
	(void)field_put_u64(&d->warden.out, GW_T_KIND, GW_KIND_DIAL);
	put_text(d, GW_T_NAME, str_of(a->ask.name));
	put_text(d, GW_T_ADDR, str_of(ip));
	if (a->ask.port)
		(void)field_put_u64(&d->warden.out, GW_T_PORT, a->ask.port);
	put_text(d, GW_T_RULE, rule_of(a));
	put_text(d, GW_T_REASON, str_of(refused));
	end_report(d, at, refused != NULL);
}

void dialer_report_broken(struct dialer *d)
{
	size_t at;

	if (conn_begin(&d->warden, GW_EVENT, 0, &at) < 0)
		return;
	(void)field_put_u64(&d->warden.out, GW_T_KIND, GW_KIND_DIAL);
	put_text(d, GW_T_REASON, STR("malformed"));
	end_report(d, at, true);
	(void)conn_flush(&d->warden, LAST_WORDS_MS);
}

/* --- configuration and policy --- */

static int add_server(struct buf *servers, struct str text)
{
	int r = servers->len ? buf_add(servers, ",", 1) : 0;

	return r < 0 ? r : buf_add_str(servers, text);
}

static int take_field(struct dialer *d, struct field field, struct buf *servers)
{
	if (field.tag == GW_T_NAMESERVER)
		return add_server(servers, field.value);
	if (field.tag == GW_T_PROXY)
		return via_parse(&d->via, field.value);
	if (field.tag == GW_T_NO_PROXY) {
		free(d->via.no_proxy);
		d->via.no_proxy = strndup(field.value.p, field.value.n);
		return d->via.no_proxy ? 0 : -ENOMEM;
	}
	return 0;
}

static int take_config(struct dialer *d, const struct frame *f, int *fds)
{
	auto_done(buf_done) struct buf servers = BUF_INIT(1024);
	struct str body = f->body;
	struct field field;
	int r;

	if (d->resolver || f->nfds != 1)
		return -EBADMSG;
	r = ledger_map(fds[0], &d->ledger);
	while (r == 0 && field_next(&body, &field) > 0)
		r = take_field(d, field, &servers);
	if (r == 0)
		r = resolver_new(&d->loop, servers.len ? servers.data : "127.0.0.1", &d->resolver);
	return r;
}

/*
 * The front enforces rates exactly. Here they are a little looser, for asks come later than the
 * front counts them. Connections that are open at once are the front's to count: it sees the ends.
 */
static void loosen(struct meter *m)
{
	uint64_t now = clock_mono_ns(), a_s = m->limits.rate_connections, dns = m->limits.rate_dns;

	m->limits.concurrent = 0;
	if (a_s)
		bucket_init(&m->connects, a_s + a_s / 8 + 1, a_s + a_s / 8 + 1, now);
	if (dns)
		bucket_init(&m->dns, dns + dns / 8 + 1, dns + dns / 8 + 1, now);
}

static int set_policy(struct dialer *d, struct str compiled)
{
	struct meter *meters;
	struct policy *p;
	int r = policy_decode(compiled, &p);

	if (r < 0)
		return r;
	r = meters_make(d->ledger, p, &meters);
	if (r < 0) {
		policy_free(p);
		return r;
	}
	meter_init(&d->total, &p->limits, NULL, clock_mono_ns());
	meter_keep(&d->total, &d->ledger->total);
	loosen(&d->total);
	for (size_t i = 0; meters && i < p->nrules; i++)
		loosen(&meters[i]);
	free(d->meters);
	if (d->policy)
		policy_free(d->policy);
	d->policy = p;
	d->meters = meters;
	d->policy_number++;
	return 0;
}

static int take_policy(struct dialer *d, struct str compiled)
{
	bool first = !d->policy;
	int r = set_policy(d, compiled);

	if (!first)
		return CONN_SAY(&d->warden, GW_POLICY_SET, 0, { GW_T_ERROR, (uint64_t)-r, NULL });
	return r < 0 ? r : dialer_serve(d);
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct dialer *d = container_of(c, struct dialer, warden);
	int r = 0;

	if (f->type == GW_CONFIG)
		r = take_config(d, f, fds);
	else if (f->type == GW_POLICY)
		r = d->resolver ? take_policy(d, f->body) : -EBADMSG;
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (r < 0)
		_exit(3); /* the warden sees it, and starts another */
}

/* The sandbox ends, or its warden has died. */
static void on_closed(struct conn *c, int err)
{
	(void)conn_flush(c, LAST_WORDS_MS);
	_exit(err < 0);
}

int dialer_control_begin(struct dialer *d, int fd)
{
	static const struct conn_ops ops = { .frame = on_frame,
					     .closed = on_closed,
					     .drained = on_drained };

	d->loop.idle = push;
	return conn_init(&d->warden, &d->loop, fd, &ops);
}
