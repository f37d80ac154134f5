/* SPDX-License-Identifier: Apache-2.0 */
/* cay pool ls: what is wanted, and what is ready. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/pool_kind.h"

static const struct out_col cols[] = {
	{ .title = "TEMPLATE", .cut = true }, { .title = "WANTED", .right = true },
	{ .title = "READY", .right = true },  { .title = "CLAIMED", .right = true },
	{ .title = "OPTIONS", .cut = true },  { .title = "PROBLEM", .cut = true },
};

struct listing {
	const struct cmd_ctx *ctx;
	struct cli_store s;
	struct out_table t;
	long keeper;
	int r;
};

struct item {
	const struct pool_row *row;
	size_t ready;
	uint64_t claimed;
	const char *problem; /* or NULL */
};

/* Alive ones only: a dead one is still listed until somebody comes by. */
static size_t count_ready(const struct state *s, const char *key)
{
	auto_close int fd = warm_open_kind(s, key);
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, alive = 0;

	if (fd < 0 || warm_list(fd, &ids, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		alive += state_is_alive(s, ids[i]);
	return alive;
}

/* Why those that are ready are none for whoever asks, or NULL. */
static const char *not_for_us(struct listing *l, const struct pool_row *row)
{
	auto_done(pool_kind_done) struct pool_kind kind = POOL_KIND_INIT;
	struct err ignored = { 0 };

	if (!row->key[0] || pool_kind_find(&l->s, row, &kind, &ignored) < 0 ||
	    strcmp(kind.key, row->key) == 0)
		return NULL;
	return "not for you: made in another control group, with other limits or rights, or of what "
	       "has changed since";
}

static void print_json(const struct item *it, long keeper)
{
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_c(&j, "template", it->row->template_);
	out_json_c(&j, "options", it->row->options);
	out_json_num(&j, "wanted", it->row->wanted);
	out_json_num(&j, "ready", (int64_t)it->ready);
	out_json_num(&j, "claimed", (int64_t)it->claimed);
	if (keeper)
		out_json_num(&j, "keeper_pid", keeper);
	else
		out_json_raw(&j, "keeper_pid", NULL);
	out_json_c(&j, "problem", it->problem);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int add_row(struct out_table *t, const struct item *it)
{
	int r = out_cell(t, OUT_PLAIN, it->row->template_);

	r |= out_cellf(t, OUT_PLAIN, "%u", it->row->wanted);
	r |= out_cellf(t, it->ready < it->row->wanted ? OUT_YELLOW : OUT_GREEN, "%zu", it->ready);
	r |= out_cellf(t, OUT_PLAIN, "%llu", (unsigned long long)it->claimed);
	r |= out_cell(t, OUT_PLAIN, it->row->options);
	r |= out_cell(t, OUT_RED, it->problem);
	return r;
}

static int show_row(void *ctx, const struct pool_row *row)
{
	struct listing *l = ctx;
	struct item it = {
		.row = row,
		.ready = row->key[0] ? count_ready(&l->s.state, row->key) : 0,
		.claimed = row->claimed + (row->key[0] ? warm_claims(&l->s.state, row->key) : 0),
		.problem = row->problem[0] ? row->problem : not_for_us(l, row),
	};

	if (l->ctx->quiet)
		puts(row->template_);
	else if (l->ctx->json)
		print_json(&it, l->keeper);
	else
		l->r |= add_row(&l->t, &it);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct listing l = { .ctx = ctx, .t = { .cols = cols, .ncols = ARRAY_LEN(cols) } };
	int r = cmd_need_args(ctx, 0, 0, "", e);

	if (r == 0)
		r = cli_store_open(&l.s, e);
	if (r == 0) {
		l.keeper = warm_keeper(&l.s.state);
		keeper_tend(&l.s.state);
		r = catalog_each_pool(l.s.catalog, show_row, &l, e);
	}
	if (r == 0 && l.r < 0)
		r = err_sys(e, ENOMEM, "list the pools");
	if (r == 0 && l.t.n)
		out_table_print(&l.t, stdout, out_width(), true, ctx->color_out);
	if (r == 0 && l.t.n && l.keeper == 0)
		fprintf(stderr, "The keeper was not running; it is started again.\n");
	out_table_done(&l.t);
	cli_store_done(&l.s);
	return r;
}

const struct cmd cmd_pool_ls = {
	.name = "pool ls",
	.synopsis = "",
	.summary = "List pools of ready sandboxes",
	.details = "READY can be claimed now, CLAIMED have been. With --json also the pid of the "
		   "keeper, which makes them: null where it was not running; then it is started "
		   "again.",
	.examples = "cay pool ls\ncay pool ls --json | jq .ready",
	.run = run,
	.data = true,
};
