/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the gateway, as events of the trace, each with its call and process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "warden/net/net.h"
#include "wire/gateway_proto.h"

struct told {
	uint64_t kind, cgroup, uid, inode, port, up, down, us, status, count;
	bool uncertain;
	struct str text[GW_T_COUNT + 1];
};

static void read_told(struct told *t, struct str body)
{
	struct field f;

	*t = (struct told){ .kind = GW_KINDS };
	while (field_next(&body, &f) > 0) {
		uint64_t *to = f.tag == GW_T_KIND     ? &t->kind
			       : f.tag == GW_T_CGROUP ? &t->cgroup
			       : f.tag == GW_T_UID    ? &t->uid
			       : f.tag == GW_T_INODE  ? &t->inode
			       : f.tag == GW_T_PORT   ? &t->port
			       : f.tag == GW_T_UP     ? &t->up
			       : f.tag == GW_T_DOWN   ? &t->down
			       : f.tag == GW_T_US     ? &t->us
			       : f.tag == GW_T_STATUS ? &t->status
			       : f.tag == GW_T_COUNT  ? &t->count
						      : NULL;

		if (f.tag == GW_T_UNCERTAIN)
			t->uncertain = true;
		else if (to)
			(void)field_u64(f, to);
		else if (f.tag <= GW_T_COUNT)
			t->text[f.tag] = f.value;
	}
}

/* --- owners of sockets --- */

void net_call_begin(struct call *c)
{
	struct net *n = c->w->net;

	if (!n || !c->group_id)
		return;
	if (!n->groups)
		n->groups = calloc(NET_GROUPS, sizeof *n->groups);
	if (!n->groups)
		return;
	n->groups[n->ngroups++ % NET_GROUPS] =
		(struct net_group){ .id = c->group_id, .call = c->id };
}

/* Returns the call, not its start event, which is written after the group is made. */
static uint32_t call_of_group(struct net *n, uint64_t id)
{
	uint32_t most = n->ngroups < NET_GROUPS ? n->ngroups : NET_GROUPS;

	for (uint32_t i = 1; id && i <= most; i++) {
		const struct net_group *g = &n->groups[(n->ngroups - i) % NET_GROUPS];

		if (g->id == id)
			return g->call;
	}
	return 0;
}

static uint64_t start_of(struct warden *w, uint32_t call)
{
	const struct call *c = call ? call_by_id(w, call) : NULL;

	return c ? c->event : w->created_event;
}

/* --- denials of a call --- */

static char *copy(struct str s)
{
	return strndup(s.n ? s.p : "", s.n);
}

static bool is_text(const char *a, struct str b)
{
	return str_is(b, a ? a : "");
}

static int put_one(const struct net_denial *d, struct buf *b)
{
	const struct {
		uint16_t tag;
		const char *text;
	} texts[] = { { TAG_NAME, d->name },	 { TAG_ADDRESS, d->addr }, { TAG_RULE, d->rule },
		      { TAG_REASON, d->reason }, { TAG_TEXT, d->why },	   { TAG_HINT, d->fix } };
	int r = field_put_u64(b, TAG_PORT, d->port);

	if (r == 0)
		r = field_put_u64(b, TAG_COUNT, d->count);
	for (size_t i = 0; i < ARRAY_LEN(texts) && r == 0; i++)
		if (texts[i].text && texts[i].text[0])
			r = field_put_c(b, texts[i].tag, texts[i].text);
	return r;
}

/* Send it at once, so that the user sees why the command fails before it ends. */
static void tell_client(struct call *c, const struct net_denial *d)
{
	auto_done(buf_done) struct buf body = BUF_INIT(8192);

	if (c->client && put_one(d, &body) == 0)
		(void)conn_send(&c->client->conn, MSG_C_DENIED, c->chan, buf_str(&body));
}

static void add_denial(struct call *c, const struct told *t)
{
	const struct str *x = t->text;
	struct net_denial **at = &c->denied, *d;
	int n = 0;

	for (; *at; at = &(*at)->next, n++) {
		d = *at;
		if (d->port == t->port && is_text(d->name, x[GW_T_NAME]) &&
		    is_text(d->addr, x[GW_T_ADDR]) && is_text(d->reason, x[GW_T_REASON])) {
			d->count++;
			return;
		}
	}
	if (n == LIMIT_NET_DENIED) {
		c->denied_more++;
		return;
	}
	d = calloc(1, sizeof *d);
	if (!d)
		return;
	*d = (struct net_denial){ .name = copy(x[GW_T_NAME]),
				  .addr = copy(x[GW_T_ADDR]),
				  .rule = copy(x[GW_T_RULE]),
				  .reason = copy(x[GW_T_REASON]),
				  .why = copy(x[GW_T_WHY]),
				  .fix = copy(x[GW_T_FIX]),
				  .port = t->port,
				  .count = 1 };
	*at = d;
	tell_client(c, d);
}

void net_deny_namespace(void *ctx)
{
	struct told t = { .kind = GW_KIND_DENY };

	t.text[GW_T_NAME] = STR("user namespace");
	t.text[GW_T_REASON] = STR("nested");
	t.text[GW_T_WHY] = STR("commands may not make namespaces");
	t.text[GW_T_FIX] = STR("--nested");
	add_denial(ctx, &t);
}

void net_call_free(struct call *c)
{
	while (c->denied) {
		struct net_denial *d = c->denied;

		c->denied = d->next;
		free(d->name);
		free(d->addr);
		free(d->rule);
		free(d->reason);
		free(d->why);
		free(d->fix);
		free(d);
	}
}

int net_put_denied(const struct call *c, struct buf *out)
{
	int r = 0;

	for (const struct net_denial *d = c->denied; d && r == 0; d = d->next) {
		auto_done(buf_done) struct buf b = BUF_INIT(8192);

		r = put_one(d, &b);
		if (r == 0)
			r = field_put(out, TAG_DENIED, buf_str(&b));
	}
	return r;
}

void net_trace_denied(struct call *c)
{
	struct trace *t = &c->w->trace;
	char text[600];

	if (!c->denied)
		return;
	trace_array(t, "denied");
	for (const struct net_denial *d = c->denied; d; d = d->next) {
		const char *host = d->name && d->name[0] ? d->name : d->addr;

		if (d->port)
			(void)snprintf(text, sizeof text, "%.255s:%u", host ? host : "",
				       (unsigned)d->port);
		else
			(void)snprintf(text, sizeof text, "%.255s", host ? host : "");
		trace_item(t, str_of(text));
	}
	trace_array_end(t);
	if (c->denied_more)
		trace_num(t, "denied_more", (int64_t)c->denied_more);
}

/* --- events --- */

static struct net_flow *flow_at(struct net *n, uint32_t slot)
{
	struct net_flow *grown;
	uint32_t size;

	if (slot >= LIMIT_NET_FLOWS)
		return NULL;
	if (slot >= n->nflows) {
		size = slot < 32 ? 64 : 2 * slot;
		grown = realloc(n->flows, size * sizeof *grown);
		if (!grown)
			return NULL;
		memset(grown + n->nflows, 0, (size - n->nflows) * sizeof *grown);
		n->flows = grown;
		n->nflows = size;
	}
	return &n->flows[slot];
}

static void put_target(struct trace *t, const struct told *x)
{
	if (x->text[GW_T_NAME].n)
		trace_text(t, "name", x->text[GW_T_NAME]);
	if (x->text[GW_T_ADDR].n)
		trace_text(t, "address", x->text[GW_T_ADDR]);
	if (x->port)
		trace_num(t, "port", (int64_t)x->port);
}

static void put_texts(struct trace *t, const struct told *x)
{
	static const struct {
		uint16_t tag;
		const char *key;
	} texts[] = {
		{ GW_T_PROTO, "protocol" }, { GW_T_TYPE, "type" },   { GW_T_ANSWER, "answer" },
		{ GW_T_SNI, "sni" },	    { GW_T_ALPN, "alpn" },   { GW_T_VERSION, "version" },
		{ GW_T_METHOD, "method" },  { GW_T_PATH, "path" },   { GW_T_RULE, "rule" },
		{ GW_T_REASON, "reason" },  { GW_T_WHY, "message" }, { GW_T_FIX, "allow" },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (x->text[texts[i].tag].n)
			trace_text(t, texts[i].key, x->text[texts[i].tag]);
	if (x->kind == GW_KIND_HTTP)
		trace_num(t, "status", (int64_t)x->status);
	if (x->kind == GW_KIND_CLOSE) {
		trace_num(t, "up", (int64_t)x->up);
		trace_num(t, "down", (int64_t)x->down);
		trace_num(t, "duration_us", (int64_t)x->us);
	}
	if (x->kind == GW_KIND_GAP) {
		trace_text(t, "what", STR("net.dns"));
		trace_num(t, "count", (int64_t)x->count);
	}
}

void net_whose(struct net *n, const struct frame *f)
{
	struct net_flow *flow = flow_at(n, f->chan);
	struct told t;

	read_told(&t, f->body);
	if (!flow || !t.inode)
		return;
	flow->owner_call = 0;
	flow->owner_inode = t.inode;
	flow->owner_process = net_process_of(n->w, &flow->owner_call, t.inode);
}

/* The pid inside; also sets the call, if the group did not identify it. */
static int owner_of(struct net *n, const struct net_flow *flow, const struct told *t,
		    uint32_t *call)
{
	int process;

	if (t->inode && flow->owner_inode == t->inode) {
		if (!*call)
			*call = flow->owner_call;
		return flow->owner_process;
	}
	process = net_process_of(n->w, call, t->inode);
	/* Every process belongs to a call: with only one call, it is that one. */
	if (!*call && n->w->ncalls == 1)
		*call = n->w->calls->id;
	return process;
}

static bool of_flow(uint64_t kind)
{
	return kind == GW_KIND_TLS || kind == GW_KIND_HTTP || kind == GW_KIND_CLOSE;
}

/* Kinds that identify the call of a socket; the others take it from their flow. */
static bool tells_call(uint64_t kind)
{
	return !of_flow(kind) && kind != GW_KIND_GAP;
}

void net_event(struct net *n, const struct frame *f)
{
	static const char *const kinds[GW_KIND_DIAL] = { "net.dns",  "net.connect", "net.tls",
							 "net.http", "net.close",   "net.deny",
							 "net.fail", "trace.gap" };
	struct warden *w = n->w;
	struct net_flow *flow = flow_at(n, f->chan);
	uint32_t call;
	uint64_t event;
	struct call *c;
	struct told t;
	int process;

	read_told(&t, f->body);
	if (t.kind >= GW_KIND_DIAL || !flow) /* only the dialer reports dials */
		return;
	call = call_of_group(n, t.cgroup);
	process = tells_call(t.kind) ? owner_of(n, flow, &t, &call) : 0;
	if (of_flow(t.kind) && flow->event)
		call = flow->call;
	event = trace_begin(&w->trace, kinds[t.kind], call,
			    of_flow(t.kind) && flow->event ? flow->event : start_of(w, call));
	if (process)
		trace_num(&w->trace, "process", process);
	if ((t.uncertain && t.inode) ||
	    (tells_call(t.kind) && call && !net_socket_is_of(w, call, t.inode)))
		trace_bool(&w->trace, "certain", false);
	put_target(&w->trace, &t);
	put_texts(&w->trace, &t);
	(void)trace_end(&w->trace);
	if (t.kind == GW_KIND_CONNECT)
		*flow = (struct net_flow){ .event = event,
					   .call = call,
					   .owner_call = flow->owner_call,
					   .owner_process = flow->owner_process,
					   .owner_inode = flow->owner_inode };
	else if (t.kind == GW_KIND_CLOSE)
		*flow = (struct net_flow){ 0 };
	c = t.kind == GW_KIND_DENY && call ? call_by_id(w, call) : NULL;
	if (c)
		add_denial(c, &t);
}

void net_dial_event(struct net *n, const struct frame *f)
{
	struct trace *tr = &n->w->trace;
	struct told t;

	read_told(&t, f->body);
	if (t.kind != GW_KIND_DIAL)
		return;
	(void)trace_begin(tr, "net.dial", 0, n->w->created_event);
	put_target(tr, &t);
	if (t.text[GW_T_RULE].n)
		trace_text(tr, "rule", t.text[GW_T_RULE]);
	if (t.text[GW_T_REASON].n)
		trace_text(tr, "refused", t.text[GW_T_REASON]);
	if (t.count)
		trace_num(tr, "unreported", (int64_t)t.count);
	(void)trace_end(tr);
}

void net_flows_lost(struct net *n)
{
	struct trace *t = &n->w->trace;

	for (uint32_t i = 0; i < n->nflows; i++) {
		if (!n->flows[i].event)
			continue;
		(void)trace_begin(t, "net.close", n->flows[i].call, n->flows[i].event);
		trace_text(t, "reason", STR("the gateway died"));
		(void)trace_end(t);
		n->flows[i] = (struct net_flow){ 0 };
	}
}
