/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/sandboxes.h"

static struct {
	bool all, no_header, wide;
	struct opt_list labels;
} o;

static struct opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL, "Also sandboxes whose warden is gone (lost)", &o.all },
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
	struct client_state info;
};

static bool is_wanted(const struct sandbox_row *row, const json_t *spec)
{
	if (!o.all && strcmp(row->state, "lost") == 0)
		return false;
	for (int i = 0; i < o.labels.n; i++)
		if (!spec_has_label(spec, o.labels.items[i]))
			return false;
	return true;
}

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
	r |= out_cell(t, OUT_PLAIN, spec_first_dir(it->spec));
	return r;
}

static void print_json(const struct item *it)
{
	const struct sandbox_row *row = it->row;
	auto_free char *dirs = json_dumps(json_object_get(it->spec, "dirs"), JSON_COMPACT);
	auto_free char *labels = json_dumps(json_object_get(it->spec, "labels"), JSON_COMPACT);
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", row->id);
	out_json_c(&j, "name", row->name);
	out_json_c(&j, "state", it->known ? it->info.state : row->state);
	out_json_c(&j, "template", row->template_);
	out_json_bool(&j, "ephemeral", row->ephemeral);
	out_json_time(&j, "created", row->created_ns);
	if (it->known) {
		out_json_num(&j, "calls_running", it->info.calls_running);
		out_json_num(&j, "calls_total", (int64_t)it->info.calls_total);
	} else {
		out_json_raw(&j, "calls_running", NULL);
		out_json_raw(&j, "calls_total", NULL);
	}
	if (it->known && it->info.ttl_left_ms != UINT64_MAX)
		out_json_num(&j, "ttl_left_ms", (int64_t)it->info.ttl_left_ms);
	else
		out_json_raw(&j, "ttl_left_ms", NULL);
	out_json_raw(&j, "dirs", dirs ? dirs : "[]");
	out_json_raw(&j, "labels", labels ? labels : "{}");
	out_json_close(&j, '}');
	out_json_line(&j);
}

/* A warden that is just ending does not answer; the list goes on without its numbers. */
static void ask(struct item *it, const struct state *s)
{
	struct err ignored;

	if (strcmp(it->row->state, "running") == 0)
		it->known = client_info(s, it->row->id, &it->info, &ignored) == 0;
}

static int show_one(const struct cmd_ctx *ctx, const struct state *s, struct out_table *t,
		    struct item *it)
{
	if (ctx->quiet) {
		puts(it->row->id);
		return 0;
	}
	ask(it, s);
	if (!ctx->json)
		return add_row(t, it);
	print_json(it);
	return 0;
}

static void say_what_is_missing(const struct cmd_ctx *ctx, int shown, int lost)
{
	if (ctx->json || ctx->quiet || !isatty(STDERR_FILENO))
		return;
	if (lost)
		fprintf(stderr, "%d lost, not shown; look at them with: cay ls --all\n", lost);
	else if (!shown && o.labels.n == 0)
		fprintf(stderr, "No sandboxes. Make one with: cay create --name box\n");
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(sandbox_list_done) struct sandbox_list list = { 0 };
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	int shown = 0, lost = 0, removed;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_store_open(&s, e) < 0 ||
	    catalog_reconcile(s.catalog, &s.state, 0, &removed, e) < 0 ||
	    sandbox_list_load(&list, &s, e) < 0)
		return -1;
	for (int i = 0; i < list.n; i++) {
		auto_done(spec_free) json_t *spec = spec_load(&list.rows[i]);
		struct item it = { .row = &list.rows[i], .spec = spec };

		lost += !o.all && strcmp(it.row->state, "lost") == 0;
		if (!is_wanted(it.row, spec))
			continue;
		shown++;
		if (show_one(ctx, &s.state, &t, &it) < 0)
			return err_sys(e, ENOMEM, "listing the sandboxes");
	}
	if (t.n)
		out_table_print(&t, stdout, o.wide ? 0 : out_width(), !o.no_header, ctx->color_out);
	say_what_is_missing(ctx, shown, lost);
	keeper_tend(&s.state);
	return 0;
}

const struct cmd cmd_ls = {
	.name = "ls",
	.synopsis = "[--all] [--label K[=V]]...",
	.summary = "List sandboxes",
	.details =
		"CALLS are the running ones and all that there were. LEFT is what remains of the "
		"time to live. DIR is the first directory "
		"that was given with --dir.",
	.examples = "cay ls\ncay ls --label task=42 -q\ncay ls --json | jq -r .name",
	.run = run,
	.opts = opts,
	.data = true,
};
