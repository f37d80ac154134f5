/* SPDX-License-Identifier: Apache-2.0 */
/* cay net: what a sandbox talks to, by host. The trace tells what was, the gateway what is. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_net.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/sandboxes.h"
#include "cli/trace_file.h"
#include "trace/read.h"

enum { ROWS_MOST = 4096 };

struct row {
	char host[256];
	uint32_t port;
	uint32_t call;
	uint64_t connections, open, denied, up, down;
};

struct rows {
	struct row *at;
	int n, lost;
};

static bool by_call;
static struct opt opts[] = {
	{ "by-call", 0, OPT_FLAG, NULL, "A line for each call that used a host", &by_call },
	{ 0 },
};

static struct row *row_of(struct rows *r, const char *host, uint32_t port, uint32_t call)
{
	struct row *grown;

	if (!by_call)
		call = 0;
	for (int i = 0; i < r->n; i++)
		if (r->at[i].port == port && r->at[i].call == call &&
		    strcmp(r->at[i].host, host) == 0)
			return &r->at[i];
	if (r->n == ROWS_MOST || !(grown = realloc(r->at, sizeof *grown * (size_t)(r->n + 1)))) {
		r->lost++;
		return NULL;
	}
	r->at = grown;
	r->at[r->n] = (struct row){ .port = port, .call = call };
	(void)snprintf(r->at[r->n].host, sizeof r->at[r->n].host, "%s", host);
	return &r->at[r->n++];
}

static uint64_t number(const json_t *ev, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(ev, key));

	return v > 0 ? (uint64_t)v : 0;
}

static void add_event(struct rows *r, const struct trace_event *ev)
{
	const char *name = json_string_value(json_object_get(ev->json, "name"));
	const char *addr = json_string_value(json_object_get(ev->json, "address"));
	uint32_t port = (uint32_t)number(ev->json, "port");
	bool closed = str_is(ev->kind, "net.close"), denied = str_is(ev->kind, "net.deny");
	struct row *row;

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

static int read_trace(struct rows *r, const char *ref, struct err *e)
{
	auto_done(trace_file_done) struct trace_file file = { .fd = FD_NONE, .state.fd = FD_NONE };
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct str line, kind;
	uint32_t call;

	if (trace_file_open(ref, &file, e) < 0)
		return -1;
	trace_lines_init(&lines, file.fd);
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

static int add_open(void *ctx, const struct client_flow *f)
{
	struct row *row = row_of(ctx, f->name[0] ? f->name : f->address, f->port, f->call);

	if (row) {
		row->open++;
		row->up += f->up;
		row->down += f->down;
	}
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t xb = x->up + x->down, yb = y->up + y->down;

	return xb != yb ? (xb < yb ? 1 : -1) : strcmp(x->host, y->host);
}

static void print_json(const struct row *w)
{
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_c(&j, "host", w->host);
	out_json_num(&j, "port", w->port);
	if (by_call)
		out_json_num(&j, "call", w->call);
	out_json_num(&j, "connections", (int64_t)w->connections);
	out_json_num(&j, "open", (int64_t)w->open);
	out_json_num(&j, "denied", (int64_t)w->denied);
	out_json_num(&j, "up_bytes", (int64_t)w->up);
	out_json_num(&j, "down_bytes", (int64_t)w->down);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int add_row(struct out_table *t, const struct row *w)
{
	char up[OUT_NUMBER], down[OUT_NUMBER];
	int r = out_cell(t, OUT_PLAIN, w->host);

	r |= w->port ? out_cellf(t, OUT_PLAIN, "%u", w->port) : out_cell(t, OUT_PLAIN, "");
	if (by_call)
		r |= out_cellf(t, OUT_PLAIN, "%u", w->call);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->connections);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->open);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)w->denied);
	r |= out_cell(t, OUT_PLAIN, out_size(w->up, up));
	r |= out_cell(t, OUT_PLAIN, out_size(w->down, down));
	return r;
}

static int print_table(struct cmd_ctx *ctx, const struct rows *r, struct err *e)
{
	static const struct out_col plain[] = {
		{ .title = "HOST" },
		{ .title = "PORT", .right = true },
		{ .title = "CONNECTIONS", .right = true },
		{ .title = "OPEN", .right = true },
		{ .title = "DENIED", .right = true },
		{ .title = "UP", .right = true },
		{ .title = "DOWN", .right = true },
	}, called[] = {
		{ .title = "HOST" },
		{ .title = "PORT", .right = true },
		{ .title = "CALL", .right = true },
		{ .title = "CONNECTIONS", .right = true },
		{ .title = "OPEN", .right = true },
		{ .title = "DENIED", .right = true },
		{ .title = "UP", .right = true },
		{ .title = "DOWN", .right = true },
	};
	auto_done(out_table_done) struct out_table t = {
		.cols = by_call ? called : plain,
		.ncols = by_call ? ARRAY_LEN(called) : ARRAY_LEN(plain),
	};

	for (int i = 0; i < r->n; i++)
		if (add_row(&t, &r->at[i]) < 0)
			return err_sys(e, ENOMEM, "listing the hosts");
	out_table_print(&t, stdout, out_width(), true, ctx->color_out);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct rows r = { 0 };
	struct err ignored = { 0 };
	int rc = 0;

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || read_trace(&r, ctx->args[0], e) < 0)
		return -1;
	if (cli_store_open(&s, &ignored) == 0 &&
	    catalog_find(s.catalog, ctx->args[0], &row, &ignored) == 0)
		(void)client_flows(&s.state, row.id, add_open, &r, &ignored);
	if (r.n)
		qsort(r.at, (size_t)r.n, sizeof *r.at, by_bytes);
	if (!ctx->json)
		rc = print_table(ctx, &r, e);
	for (int i = 0; ctx->json && i < r.n; i++)
		print_json(&r.at[i]);
	if (r.lost)
		fprintf(stderr, "cay: %d more hosts are not shown\n", r.lost);
	free(r.at);
	return rc;
}

const struct cmd cmd_net = {
	.name = "net",
	.synopsis = "SANDBOX",
	.summary = "Show what a sandbox talks to, by host",
	.details = "Connections, bytes and refusals of each host and port: those that have ended "
		   "from the trace, those that are open from the gateway.",
	.examples = "cay net work\ncay net work --by-call --json",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
