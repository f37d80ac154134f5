/* SPDX-License-Identifier: Apache-2.0 */
/* The front's stream to the warden: receives configuration and policies, sends events. */
#include <errno.h>
#include <unistd.h>

#include "gateway/flow.h"
#include "gateway/gateway.h"

enum {
	LAST_WORDS_MS = 200,
	EVENTS_MOST = 4 * LIMIT_CONN_HIGH, /* bytes that the warden has not read */
	EVENTS_MS = 5000,
};

void event_text(struct gateway *g, uint16_t tag, struct str text)
{
	if (text.n)
		(void)field_put(&g->warden.out, tag, text);
}

void event_num(struct gateway *g, uint16_t tag, uint64_t value)
{
	(void)field_put_u64(&g->warden.out, tag, value);
}

static void put_owner(struct gateway *g, const struct sockdiag_owner *o)
{
	if (!o)
		return;
	event_num(g, GW_T_CGROUP, o->cgroup);
	event_num(g, GW_T_UID, o->uid);
	event_num(g, GW_T_INODE, o->inode);
	if (!o->certain)
		event_num(g, GW_T_UNCERTAIN, 1);
}

int event_begin(struct gateway *g, enum gw_kind kind, uint32_t slot, const struct subject *s,
		size_t *ret_at)
{
	int r = conn_begin(&g->warden, GW_EVENT, slot, ret_at);
	char text[IP_TEXT];

	if (r < 0)
		return r;
	event_num(g, GW_T_KIND, kind);
	if (!s)
		return 0;
	put_owner(g, s->owner);
	event_text(g, GW_T_NAME, s->name);
	if (s->addr && s->addr->len) {
		ip_text(s->addr, text);
		event_text(g, GW_T_ADDR, str_of(text));
	}
	if (s->port)
		event_num(g, GW_T_PORT, s->port);
	event_text(g, GW_T_RULE, s->rule);
	return 0;
}

static void push(struct gateway *g)
{
	g->news = false;
	conn_push(&g->warden);
	if (conn_backlog(&g->warden) >
	    EVENTS_MOST) /* never lose an event: stop all connections instead */
		(void)conn_flush(&g->warden, EVENTS_MS);
	if (conn_backlog(&g->warden) > LIMIT_CONN_HIGH)
		accept_hold(g, true);
}

void event_end(struct gateway *g, size_t at, enum event_when when)
{
	(void)conn_end_later(&g->warden, at);
	if (when == EVENT_SOON)
		g->news = g->loop.chores = true;
	if (when == EVENT_NOW || conn_backlog(&g->warden) > LIMIT_CONN_HIGH)
		push(g);
}

static void on_idle(struct loop *l)
{
	struct gateway *g = container_of(l, struct gateway, loop);

	/* One per turn, because an answer may arrive in between. Connections first: the warden
	 * searches for their sockets, which may vanish. */
	if (g->news)
		push(g);
	else
		flow_close_one(g);
	g->loop.chores = g->nclosing > 0;
}

static void on_drained(struct conn *c)
{
	accept_hold(container_of(c, struct gateway, warden), false);
}

static int take_config(struct gateway *g, const struct frame *f, int *fds)
{
	struct str body = f->body;
	struct field field;

	if (g->ledger || f->nfds < 1 + SOCK_TCP6)
		return -EBADMSG;
	for (int i = 1; i < f->nfds && i <= SOCKS; i++)
		g->fds[i - 1] = TAKE_FD(fds[i]);
	while (field_next(&body, &field) > 0)
		g->ask |= field.tag == GW_T_ASK;
	return ledger_map(fds[0], &g->ledger);
}

static int take_policy(struct gateway *g, struct str compiled)
{
	bool first = !g->policy;
	uint64_t cut = 0;
	int r = policy_set(g, compiled, &cut);

	if (first) {
		if (r == 0)
			r = dns_begin(g);
		if (r == 0)
			r = accept_begin(g);
		return r < 0 ? r : conn_send(&g->warden, GW_READY, 0, STR_NONE);
	}
	return CONN_SAY(&g->warden, GW_POLICY_SET, 0, { GW_T_COUNT, cut, NULL },
			{ GW_T_ERROR, (uint64_t)-r, NULL });
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct gateway *g = container_of(c, struct gateway, warden);
	int r = 0;

	if (f->type == GW_CONFIG)
		r = take_config(g, f, fds);
	else if (f->type == GW_POLICY)
		r = g->ledger ? take_policy(g, f->body) : -EBADMSG;
	else if (f->type == GW_LIST)
		r = flow_list(g, f->chan);
	else if (f->type == GW_OWNED)
		flow_owned(g, f->chan);
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (r < 0)
		_exit(3); /* the warden notices and starts a new gateway */
}

/* The sandbox ends, or its warden died: send the remaining events if somebody still reads. */
static void on_closed(struct conn *c, int err)
{
	struct gateway *g = container_of(c, struct gateway, warden);

	flow_end_all(g, "the sandbox ended");
	(void)conn_flush(c, LAST_WORDS_MS);
	_exit(err < 0);
}

int control_begin(struct gateway *g, int fd)
{
	static const struct conn_ops ops = { .frame = on_frame,
					     .closed = on_closed,
					     .drained = on_drained };

	g->loop.idle = on_idle;
	return conn_init(&g->warden, &g->loop, fd, &ops);
}
