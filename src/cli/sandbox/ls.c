/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/sandbox/end_text.h"
#include "ops/json.h"

static struct {
	bool all, ended, no_header, wide;
	struct opt_list labels;
} o;

static struct opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL, "Running and lost ones; this is the default", &o.all },
	{ "ended", 0, OPT_FLAG, NULL, "Only sandboxes that have ended, with why they did",
	  &o.ended },
	{ "label", 0, OPT_LIST, "K[=V]", "Only sandboxes with this label; repeat to narrow down",
	  &o.labels },
	{ "no-header", 0, OPT_FLAG, NULL, "No line of titles", &o.no_header },
	{ "wide", 0, OPT_FLAG, NULL, "Shorten nothing to the width of the terminal", &o.wide },
	{ 0 },
};

static const struct out_col cols[] = {
	{ .title = "ID" },
	{ .title = "NAME" },
	{ .title = "STATE" },
	{ .title = "TEMPLATE", .cut = true },
	{ .title = "AGE", .right = true },
	{ .title = "CALLS", .right = true },
	{ .title = "LEFT", .right = true },
	{ .title = "DIR", .cut = true },
};

struct item {
	const struct sandbox_row *row;
	json_t *spec;
	bool known; /* the warden answered */
	const struct client_question *asked;
	struct client_state info;
};

static enum out_color state_color(const char *state)
{
	if (strcmp(state, "running") == 0)
		return OUT_GREEN;
	return strcmp(state, "lost") == 0 ? OUT_RED : OUT_YELLOW;
}

static int add_row(struct out_table *t, const struct item *it)
{
	const struct sandbox_row *row = it->row;
	const char *state = it->known ? it->info.state : row->state;
	char age[OUT_NUMBER], calls[48] = "", left[OUT_NUMBER] = "";
	int r = 0;

	if (it->known)
		(void)snprintf(calls, sizeof calls, "%u/%llu", it->info.calls_running,
			       (unsigned long long)it->info.calls_total);
	if (it->known && it->info.ttl_left_ms != UINT64_MAX)
		(void)out_duration(it->info.ttl_left_ms / 1000 * 1000000, left);
	r |= out_cell(t, OUT_PLAIN, row->id);
	r |= out_cell(t, OUT_PLAIN, row->name);
	r |= out_cell(t, state_color(state), state);
	r |= out_cell(t, OUT_PLAIN, row->template_);
	r |= out_cell(t, OUT_PLAIN, out_age(row->created_ns, clock_real_ns(), age));
	r |= out_cell(t, OUT_PLAIN, calls);
	r |= out_cell(t, OUT_PLAIN, left);
	r |= out_cell(t, OUT_PLAIN, options_first_dir(it->spec));
	return r;
}

static int show_one(const struct cmd_ctx *ctx, struct out_table *t, const struct item *it)
{
	if (ctx->quiet) {
		puts(it->row->id);
		return 0;
	}
	if (!ctx->json)
		return add_row(t, it);
	PRINT_JSON(json_listed, it->row, it->asked);
	return 0;
}

static void say_what_is_missing(const struct cmd_ctx *ctx, int shown)
{
	if (ctx->json || ctx->quiet || !isatty(STDERR_FILENO))
		return;
	if (!shown && o.labels.n == 0)
		fprintf(stderr, "No sandboxes. Make one with: cay create --name box\n");
}

static int show_all(const struct cmd_ctx *ctx, const struct list_result *r, struct err *e)
{
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };

	for (int i = 0; i < r->sandboxes.n; i++) {
		const struct sandbox_row *row = &r->sandboxes.rows[i];
		auto_done(options_free) json_t *spec = options_load(row);
		struct item it = { .row = row, .spec = spec };

		if (r->asked) {
			it.asked = &r->asked[i];
			it.known = r->asked[i].known;
			it.info = r->asked[i].state;
		}
		if (show_one(ctx, &t, &it) < 0)
			return err_sys(e, ENOMEM, "listing the sandboxes");
	}
	if (t.n)
		out_table_print(&t, stdout, o.wide ? 0 : out_width(), !o.no_header, ctx->color_out);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(list_result_done) struct list_result r = { 0 };
	const struct list_spec spec = { .lost = true,
					.labels = { o.labels.items, o.labels.n },
					.ids_only = ctx->quiet };

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_open_state(&s, e) < 0)
		return -1;
	if (o.ended && o.labels.n)
		return err_set(e, ERR_INVALID,
			       "--label chooses among sandboxes that are there, "
			       "not among ended ones");
	if (o.ended)
		return end_text_list(ctx, &s, !o.no_header, o.wide, e);
	if (op_list(&s, &spec, &r, e) < 0 || show_all(ctx, &r, e) < 0)
		return -1;
	say_what_is_missing(ctx, r.sandboxes.n);
	return 0;
}

const struct cmd cmd_ls = {
	.name = "ls",
	.synopsis = "[--all|--ended] [--label K[=V]]...",
	.summary = "List sandboxes",
	.details =
		"CALLS are the running ones and all that there were. LEFT is what remains of the "
		"time to live. DIR is the first directory "
		"that was given with --dir. A lost sandbox is one whose warden died: cay why tells "
		"why, cay fork goes on with its files. --ended lists those whose trace is still "
		"there: the last 256 of the last 30 days (CAY_KEEP_ENDED, CAY_KEEP_DAYS).",
	.examples =
		"cay ls\ncay ls --ended\ncay ls --label task=42 -q\ncay ls --json | jq -r .name",
	.run = run,
	.opts = opts,
	.data = true,
};
