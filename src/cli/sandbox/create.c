/* SPDX-License-Identifier: Apache-2.0 */
/* cay create: creates a sandbox that stays. */
#include <stdio.h>

#include "cli/context.h"
#include "cli/output.h"
#include "cli/sandbox/sandbox_options.h"
#include "ops/json.h"

static struct sandbox_opts o;
static struct opt opts[] = {
	SANDBOX_OPTS_BUILD(o), SANDBOX_OPTS_CALL(o),	    LIMIT_OPTS_BUILD(o.limits),
	NET_OPTS_BUILD(o.net), LIMIT_OPTS_EFFORT(o.limits), { 0 },
};

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(sandbox_spec_done) struct sandbox_spec s = { 0 };
	struct created made;

	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0 || sandbox_opts_spec(&o, &s, e) < 0 ||
	    cli_open_state(&c, e) < 0 || op_create(&c, &s.spec, 1, &made, e) < 0)
		return -1;
	cli_print_warnings(&made.warnings);
	if (ctx->json)
		PRINT_JSON(json_created, &made);
	else
		printf("%s\n", made.id);
	return 0;
}

const struct cmd cmd_create = {
	.name = "create",
	.synopsis = "[options]",
	.summary = "Make a sandbox that stays until it is killed, and print its id",
	.details =
		"Commands are run in it with cay exec and cay shell. Options such as --env, --cwd "
		"and --user are the defaults of every command in it. A --dir shows the host's "
		"directory as it is, with every later change, until the first snapshot, fork or "
		"transaction copies it; with --copy it is copied at once.",
	.examples = "cay create --name work --dir .\n"
		    "id=$(cay create); cay exec $id -- make; cay kill $id",
	.run = run,
	.opts = opts,
	.data = true,
};
