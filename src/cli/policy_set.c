/* SPDX-License-Identifier: Apache-2.0 */
/* cay policy set: another policy for a sandbox that lives. */
#include <stdio.h>

#include "cli/client_net.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/policy_load.h"
#include "cli/sandboxes.h"
#include "store/snapshots.h"
#include "wire/frame.h"
#include "wire/proto.h"

static struct opt_list allow, deny;
static struct opt opts[] = {
	{ "allow", 0, OPT_LIST, "HOST[:PORT]", "Allow this host too", &allow },
	{ "deny", 0, OPT_LIST, "HOST[:PORT]", "Keep it from this host, whatever else is allowed",
	  &deny },
	{ 0 },
};

/* The recipe with this policy. 1, 0 where it has none: there is no network, or -errno. */
static int rewrite(struct str recipe, struct str policy, struct buf *out)
{
	struct field f;
	int found = 0, r;

	while ((r = field_next(&recipe, &f)) > 0) {
		bool is = f.tag == TAG_NET_POLICY;

		found |= is;
		r = field_put(out, f.tag, is ? policy : f.value);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : found;
}

/*
 * Its forks are to have the same policy. They get it first: were it the other way round, one made
 * in between could reach what the sandbox itself cannot any more.
 */
static int set(struct cli_store *s, const char *id, struct str policy, uint64_t *ret_cut,
	       struct err *e)
{
	auto_done(buf_done) struct buf was = BUF_INIT(LIMIT_FRAME_BODY);
	auto_done(buf_done) struct buf now = BUF_INIT(LIMIT_FRAME_BODY);
	struct err ignored = { 0 };
	int r = catalog_recipe(s->catalog, id, &was, e);

	if (r < 0 && e->kind != ERR_NOT_FOUND)
		return -1;
	/* One that ends with its command has none, and no forks. */
	r = r < 0 ? 0 : rewrite(buf_str(&was), policy, &now);
	if (r < 0)
		return err_sys(e, -r, "write the policy for forks of '%s'", id);
	if (r > 0 && catalog_set_recipe(s->catalog, id, buf_str(&now), e) < 0)
		return -1;
	if (client_set_policy(&s->state, id, policy, ret_cut, e) == 0)
		return 0;
	if (r > 0)
		(void)catalog_set_recipe(s->catalog, id, buf_str(&was), &ignored);
	return -1;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(buf_done) struct buf compiled = BUF_INIT(LIMIT_POLICY);
	struct policy_source src = { .allow = &allow, .deny = &deny };
	uint64_t cut = 0;

	if (cmd_need_args(ctx, 2, 2, "a SANDBOX and a PRESET or FILE", e) < 0)
		return -1;
	src.net = ctx->args[1];
	if (policy_load(&src, &compiled, NULL, e) < 0 || cli_store_open(&s, e) < 0 ||
	    catalog_find(s.catalog, ctx->args[0], &row, e) < 0 ||
	    set(&s, row.id, buf_str(&compiled), &cut, e) < 0)
		return -1;
	if (ctx->json) {
		struct out_json j = { .f = stdout };

		out_json_open(&j, NULL, '{');
		out_json_num(&j, "connections_cut", (int64_t)cut);
		out_json_close(&j, '}');
		out_json_line(&j);
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
