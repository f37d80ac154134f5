/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/end_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/signal_name.h"
#include "cli/output.h"

void end_text_call(const struct trace_story *s, char *out, size_t size)
{
	const char *reason = s->call_reason, *name = NULL;

	out[0] = '\0';
	if (!s->call)
		return;
	if (s->signal > 0 && s->signal < 128)
		name = signal_name((int)s->signal);
	if (reason[0] && strcmp(reason, "exit") != 0 && strcmp(reason, "signal") != 0)
		(void)snprintf(out, size, "%llu: %s", (unsigned long long)s->call, reason);
	else if (s->signal > 0)
		(void)snprintf(out, size, "%llu: SIG%s", (unsigned long long)s->call,
			       name ? name : "?");
	else
		(void)snprintf(out, size, "%llu: exit %lld", (unsigned long long)s->call,
			       (long long)s->code);
}

static int add_row(struct out_table *t, const struct ended_row *row)
{
	const struct trace_story *s = &row->story;
	auto_free char *argv = s->argv ? argv_text(s->argv) : NULL;
	bool plain = strcmp(row->cause, "command") == 0 || strcmp(row->cause, "killed") == 0;
	char age[OUT_NUMBER], call[96];
	int r = 0;

	end_text_call(s, call, sizeof call);
	r |= out_cell(t, OUT_PLAIN, row->id);
	r |= out_cell(t, OUT_PLAIN, s->name);
	r |= out_cell(t, OUT_PLAIN, out_age(row->ended_ns, clock_real_ns(), age));
	r |= out_cell(t, plain ? OUT_PLAIN : OUT_YELLOW, row->cause);
	r |= out_cell(t, OUT_PLAIN, call);
	r |= out_cell(t, OUT_PLAIN, argv);
	return r;
}

static int print_table(const struct cmd_ctx *ctx, const struct ended_list *l, bool header,
		       bool wide, struct err *e)
{
	static const struct out_col cols[] = {
		{ .title = "ID" },    { .title = "NAME" },	{ .title = "ENDED", .right = true },
		{ .title = "CAUSE" }, { .title = "LAST CALL" }, { .title = "COMMAND", .cut = true },
	};
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };

	for (int i = 0; i < l->n; i++)
		if (add_row(&t, &l->rows[i]) < 0)
			return err_sys(e, ENOMEM, "listing the ended sandboxes");
	if (t.n)
		out_table_print(&t, stdout, wide ? 0 : out_width(), header, ctx->color_out);
	return 0;
}

int end_text_list(const struct cmd_ctx *ctx, struct cay *c, bool header, bool wide, struct err *e)
{
	auto_done(ended_list_done) struct ended_list l = { 0 };

	if (op_ended(c, 0, &l, e) < 0)
		return -1;
	if (!ctx->quiet && !ctx->json)
		return print_table(ctx, &l, header, wide, e);
	for (int i = 0; i < l.n; i++)
		if (ctx->quiet)
			puts(l.rows[i].id);
		else
			PRINT_JSON(json_ended, &l.rows[i]);
	return 0;
}
