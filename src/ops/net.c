/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/net.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/wait.h"
#include "ops/trace_open.h"
#include "trace/read.h"

enum { ROWS_MOST = 4096 };

void net_result_done(struct net_result *r)
{
	free(r->rows);
	*r = (struct net_result){ 0 };
}

static struct net_row *row_of(struct net_result *r, const char *host, uint32_t port, uint32_t call)
{
	struct net_row *grown;

	if (!r->by_call)
		call = 0;
	for (int i = 0; i < r->n; i++)
		if (r->rows[i].port == port && r->rows[i].call == call &&
		    strcmp(r->rows[i].host, host) == 0)
			return &r->rows[i];
	if (r->n == ROWS_MOST || !(grown = realloc(r->rows, sizeof *grown * (size_t)(r->n + 1)))) {
		r->lost++;
		return NULL;
	}
	r->rows = grown;
	r->rows[r->n] = (struct net_row){ .port = port, .call = call };
	(void)snprintf(r->rows[r->n].host, sizeof r->rows[r->n].host, "%s", host);
	return &r->rows[r->n++];
}

static uint64_t number(const json_t *ev, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(ev, key));

	return v > 0 ? (uint64_t)v : 0;
}

static void add_event(struct net_result *r, const struct trace_event *ev)
{
	const char *name = json_string_value(json_object_get(ev->json, "name"));
	const char *addr = json_string_value(json_object_get(ev->json, "address"));
	uint32_t port = (uint32_t)number(ev->json, "port");
	bool closed = str_is(ev->kind, "net.close"), denied = str_is(ev->kind, "net.deny");
	struct net_row *row;

	if ((!closed && !denied && !str_is(ev->kind, "net.connect")) || (!name && !addr))
		return;
	row = row_of(r, name ? name : addr, port, ev->call);
	if (!row)
		return;
	if (denied) {
		row->denied++;
	} else if (closed) {
		row->up += number(ev->json, "up");
		row->down += number(ev->json, "down");
	} else {
		row->connections++;
	}
}

static int read_trace(struct net_result *r, struct cay *c, const char *ref, struct err *e)
{
	auto_done(trace_open_done) struct trace_found file = { .fd = FD_NONE };
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct str line, kind;
	uint32_t call;

	if (op_trace_open(c, ref, &file, e) < 0)
		return -1;
	trace_open_lines(&file, &lines);
	while (trace_lines_next(&lines, &line) > 0) {
		auto_done(trace_event_done) struct trace_event ev = { 0 };
		struct err ignored = { 0 };

		if (trace_event_glance(line, &kind, &call) && !str_starts(kind, STR("net.")))
			continue;
		if (trace_event_parse(line, &ev, &ignored) == 0)
			add_event(r, &ev);
	}
	return 0;
}

static int add_open(void *ctx, const struct link_flow *f)
{
	struct net_row *row = row_of(ctx, f->name[0] ? f->name : f->address, f->port, f->call);

	if (row) {
		row->open++;
		row->up += f->up;
		row->down += f->down;
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct net_row *x = a, *y = b;
	uint64_t xb = x->up + x->down, yb = y->up + y->down;

	return xb != yb ? (xb < yb ? 1 : -1) : strcmp(x->host, y->host);
}

int op_net(struct cay *c, const char *ref, bool by_call, struct net_result *ret, struct err *e)
{
	auto_done(net_result_done) struct net_result r = { .by_call = by_call };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(link_free) struct link *l = NULL;
	struct err ignored = { 0 };

	if (read_trace(&r, c, ref, e) < 0)
		return -1;
	if (catalog_find(c->catalog, ref, &row, &ignored) == 0 &&
	    link_connect(&c->wait, &c->state, row.id, &l, &ignored) == 0)
		(void)link_flows(l, &c->wait, add_open, &r, &ignored);
	if (r.n)
		qsort(r.rows, (size_t)r.n, sizeof *r.rows, by_bytes);
	*ret = r;
	r = (struct net_result){ 0 };
	return 0;
}
