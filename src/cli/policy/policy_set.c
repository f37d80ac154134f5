/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy set: another policy for a sandbox that lives. */
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

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(buf_done) struct buf compiled = BUF_INIT(LIMIT_POLICY);
	struct policy_source src = { .allow = &allow, .deny = &deny };
	uint64_t cut = 0;

	if (cmd_need_args(ctx, 2, 2, "a SANDBOX and a PRESET or FILE", e) < 0)
		return -1;
	src.net = ctx->args[1];
	if (policy_load(&src, &compiled, NULL, e) < 0 || cli_open_state(&s, e) < 0 ||
	    op_policy_set(&s, ctx->args[0], buf_str(&compiled), &cut, e) < 0)
		return -1;
	if (ctx->json) {
		struct json_line j;

		json_line_begin(&j);
		json_obj(&j.json);
		json_put_i64(&j.json, "connections_cut", (int64_t)cut);
		json_end(&j.json);
		json_line_print(&j);
	} else if (!ctx->quiet && cut) {
		printf("%llu connections that are no longer allowed were cut\n",
		       (unsigned long long)cut);
	}
	return 0;
}

const struct cmd cmd_policy_set = {
	.name = "policy set",
	.synopsis = "[options] SANDBOX PRESET|FILE",
	.summary = "Give a running sandbox another network policy",
	.details = "It holds at once. Connections that it does not allow are cut. What was used of "
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
