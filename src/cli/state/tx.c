/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/tx.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool force;
static struct opt opts[] = {
	{ "force", 'f', OPT_FLAG, NULL, "Of abort: end commands that run in it first", &force },
	{ 0 },
};

int tx_finish(struct cay *c, const struct tx_result *tx, bool keep, struct err *e)
{
	struct tx_result done;

	if (keep)
		return op_tx_commit(c, tx->id, tx->transaction, &done, e) < 0
			       ? err_ctx(e, "commit the transaction")
			       : 0;
	return op_tx_abort(c, tx->id, tx->transaction, true, &done, e) < 0
		       ? err_ctx(e, "abort the transaction")
		       : 0;
}

static int act(struct cay *c, const char *verb, const char *ref, struct tx_result *ret,
	       struct err *e)
{
	if (strcmp(verb, "begin") == 0)
		return op_tx_begin(c, ref, false, ret, e);
	if (strcmp(verb, "commit") == 0)
		return op_tx_commit(c, ref, NULL, ret, e);
	return op_tx_abort(c, ref, NULL, force, ret, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct tx_result tx;
	const char *verb;

	if (cmd_need_args(ctx, 2, 2, "begin, commit or abort, and a sandbox", e) < 0)
		return -1;
	verb = ctx->args[0];
	if (strcmp(verb, "begin") != 0 && strcmp(verb, "commit") != 0 && strcmp(verb, "abort") != 0)
		return cmd_usage(ctx, e, "'%s': begin, commit or abort", verb);
	if (cli_open(&c, e) < 0 || act(&c, verb, ctx->args[1], &tx, e) < 0)
		return -1;
	if (ctx->json)
		PRINT_JSON(json_tx, &tx, verb);
	return 0;
}

const struct cmd cmd_tx = {
	.name = "tx",
	.synopsis = "begin|commit|abort [--force] SANDBOX",
	.summary = "Keep or drop all that is done to a sandbox's files from now on",
	.details = "After abort the files are what they were at begin, in every detail. "
		   "Transactions nest: commit and abort end the innermost. For one command, "
		   "cay exec --tx begins, and commits if it exits with 0, else aborts. Where that "
		   "cay is killed, its command ends with it, and the transaction stays open "
		   "until somebody commits or aborts it.",
	.examples = "cay tx begin work; cay exec work -- ./migrate.sh; cay tx abort work\n"
		    "cay exec --tx work -- make install",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "begin|commit|abort",
};
