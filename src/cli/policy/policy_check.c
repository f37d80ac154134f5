/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy check: reads a policy and reports its errors or its meaning. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/policy/policy_load.h"
#include "ops/policy_json.h"
#include "wire/ip.h"

enum { TEXT_MAX = 4096 };

static int add_item(struct buf *b, struct str text)
{
	if (b->len && buf_add_c(b, " ") < 0)
		return -1;
	return buf_add_str(b, text);
}

/* Lists hosts and addresses; the rest is cut off. */
static const char *targets(const struct policy_rule *r, struct buf *b)
{
	char cidr[CIDR_TEXT];

	buf_clear(b);
	for (size_t i = 0; i < r->nhosts; i++)
		if (add_item(b, r->hosts[i]) < 0)
			break;
	for (size_t i = 0; i < r->naddresses; i++) {
		cidr_text(&r->addresses[i], cidr);
		if (add_item(b, str_of(cidr)) < 0)
			break;
	}
	return b->len ? b->data : "everything";
}

/* "**", "**.com", "*.com": anybody can register a matching name. */
static bool is_wide(struct str pattern)
{
	size_t labels = 1;

	for (size_t i = 0; i < pattern.n; i++)
		labels += pattern.p[i] == '.';
	return labels <= 2 && pattern.p[0] == '*';
}

static void warn(const struct cmd_ctx *ctx, const struct policy_rule *r, const char *before,
		 struct str what, const char *after)
{
	fprintf(stderr, "%swarning:%s ", out_sgr(ctx->color_err, OUT_YELLOW),
		out_sgr(ctx->color_err, OUT_PLAIN));
	out_safe_to(stderr, r->origin);
	fputs(": rule '", stderr);
	out_safe_to(stderr, r->id);
	fputs("' ", stderr);
	fprintf(stderr, "%s '%.*s'%s\n", before, STR_ARG(what), after);
}

static void warn_rule(const struct cmd_ctx *ctx, const struct policy_rule *r)
{
	if (r->action != POLICY_ACT_ALLOW)
		return;
	for (size_t i = 0; i < r->nhosts; i++)
		if (is_wide(r->hosts[i]))
			warn(ctx, r, "allows", r->hosts[i],
			     ": anyone can own a name there and receive data");
	for (size_t i = 0; i < r->nports && r->protocols == PROTO_TCP; i++)
		if (r->ports[i].first <= 443 && r->ports[i].last >= 443)
			warn(ctx, r, "takes port", STR("443"),
			     " as plain tcp: server names are not checked there");
}

static int print_table(const struct cmd_ctx *ctx, const struct policy *p)
{
	static const struct out_col cols[] = {
		{ .title = "RULE" },
		{ .title = "ACTION" },
		{ .title = "TARGETS", .cut = true },
		{ .title = "PORTS", .cut = true },
		{ .title = "PROTOCOL" },
	};
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	int n = 0;

	for (size_t i = 0; i < p->nrules; i++) {
		const struct policy_rule *r = &p->rules[i];
		bool allow = r->action == POLICY_ACT_ALLOW;

		n |= out_cellf(&t, OUT_PLAIN, "%.*s", STR_ARG(r->id));
		n |= out_cell(&t, allow ? OUT_GREEN : OUT_RED, policy_action_name(r->action));
		n |= out_cell(&t, OUT_PLAIN, targets(r, &b));
		n |= out_cell(&t, OUT_PLAIN, policy_ports_text(r, &b));
		n |= out_cell(&t, OUT_PLAIN, policy_protocols_text(r, &b));
	}
	n |= out_cell(&t, OUT_DIM, "default");
	n |= out_cell(&t, p->def == POLICY_ACT_ALLOW ? OUT_GREEN : OUT_RED,
		      policy_action_name(p->def));
	for (int i = 0; i < 3; i++)
		n |= out_cell(&t, OUT_DIM, i ? "" : "everything else");
	out_table_print(&t, stdout, out_width(), true, ctx->color_out);
	return n;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(buf_done) struct buf compiled = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_free) struct policy *p = NULL;
	struct policy_source s = { 0 };

	if (cmd_need_args(ctx, 1, 1, "FILE or PRESET", e) < 0)
		return -1;
	s.net = ctx->args[0];
	if (policy_load(&s, &compiled, &p, e) < 0)
		return -1;
	for (size_t i = 0; i < p->nrules && !ctx->quiet; i++)
		warn_rule(ctx, &p->rules[i]);
	if (ctx->json)
		PRINT_JSON(json_policy_checked, p);
	else if (!ctx->quiet && print_table(ctx, p) < 0)
		return err_sys(e, ENOMEM, "printing a policy");
	return 0;
}

const struct cmd cmd_policy_check = {
	.name = "policy check",
	.synopsis = "FILE|PRESET",
	.summary = "Check a network policy and list its rules",
	.details =
		"Reads a policy as YAML, or as JSON where the file's name ends in .json ('-' reads "
		"standard input), and says the first mistake with its line and column. Rules are "
		"listed in the order in which they are asked; the first that matches decides. "
		"docs/policy.md describes the document.",
	.examples = "cay policy check net.yaml\ncay policy check coding",
	.run = run,
	.data = true,
	.complete = "file",
};
