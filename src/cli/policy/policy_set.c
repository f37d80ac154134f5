/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy set: replaces the policy of a running sandbox. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/policy/policy_load.h"
#include "ops/policy.h"

static struct opt_list allow, deny;
static struct opt opts[] = {
	{ "allow", 0, OPT_LIST, "HOST[:PORT]", "Allow this host too", &allow },
	{ "deny", 0, OPT_LIST, "HOST[:PORT]", "Keep it from this host, whatever else is allowed",
	  &deny },
	{ 0 },
};

static void print_list(const char *before, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		fputs(before, stdout);
		out_safe(json_string_value(item));
		putchar('\n');
	}
}

/* The new policy replaces the old one completely. Tell the user which --allow targets are gone. */
static void print_text(const struct policy_set_result *r)
{
	const json_t *item;
	size_t i;

	print_list("added    ", r->added);
	print_list("removed  ", r->removed);
	if (r->cut)
		printf("%llu connections that are no longer allowed were cut\n",
		       (unsigned long long)r->cut);
	json_array_foreach(r->dropped, i, item)
	{
		fputs("cay: the last policy's ", stderr);
		out_safe_to(stderr, str_of(json_string_value(item)));
		fputs(" does not hold any more; to keep it, give it again\n", stderr);
	}
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(buf_done) struct buf compiled = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_set_result_done) struct policy_set_result r = { 0 };
	struct policy_source src = { .allow = &allow, .deny = &deny };

	if (cmd_need_args(ctx, 2, 2, "a SANDBOX and a PRESET or FILE", e) < 0)
		return -1;
	src.net = ctx->args[1];
	if (policy_load(&src, &compiled, NULL, e) < 0 || cli_open_state(&s, e) < 0 ||
	    op_policy_set(&s, ctx->args[0], buf_str(&compiled), &r, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_policy_set, &r);
	else if (!ctx->quiet)
		print_text(&r);
	return 0;
}

const struct cmd cmd_policy_set = {
	.name = "policy set",
	.synopsis = "[options] SANDBOX PRESET|FILE",
	.summary = "Give a running sandbox another network policy",
	.details =
		"It holds at once, in the place of the whole last policy, also of its --allow and "
		"--deny. Prints the rules that came and went. Connections that it does not allow are cut. What was used of "
		"budgets stays used, by the ids of the rules. Forks of the sandbox and of its "
		"snapshots have it too, from then on. The sandbox must have been made with a "
		"network.",
	.examples = "cay policy set work ./net.yaml\n"
		    "cay policy set work coding --allow internal.example.com",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
