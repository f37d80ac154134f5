/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fork.h"

#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static struct {
	uint64_t count;
	const char *name;
} o;

static struct opt opts[] = {
	{ "count", 'c', OPT_COUNT, "N", "How many; default: 1", &o.count },
	{ "name", 'n', OPT_TEXT, "NAME", "A name; of several NAME-1, NAME-2 and so on", &o.name },
	{ 0 },
};

static int print_one(void *ctx, unsigned i, const struct creation *n)
{
	struct created made;

	(void)i;
	created_fill(&made, n);
	if (((const struct cmd_ctx *)ctx)->json)
		PRINT_JSON(json_forked, &made);
	else
		puts(made.id);
	/* Flush, so that an interrupted user has seen every fork that exists. */
	(void)fflush(stdout);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct fork_spec f = {
		.name = o.name, .numbered = o.count > 1, .fn = print_one, .ctx = ctx
	};

	if (cmd_need_args(ctx, 1, 1, "a sandbox or snapshot", e) < 0)
		return -1;
	f.count = o.count > FORK_MOST ? FORK_MOST + 1 : o.count ? (unsigned)o.count : 1;
	return cli_open_state(&c, e) < 0 ? -1 : op_fork(&c, ctx->args[0], &f, e);
}

const struct cmd cmd_fork = {
	.name = "fork",
	.synopsis = "[options] SANDBOX|SNAPSHOT",
	.summary = "Make sandboxes with the same files and options as another has now",
	.details = "Files, environment, limits, profile and mounts are the same; id, host name and "
		   "machine id are the new one's own. Commands that run in the first go on there "
		   "and are not copied. Prints the ids.",
	.examples = "cay fork work\ncay fork before-upgrade --count 4 --name try",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
