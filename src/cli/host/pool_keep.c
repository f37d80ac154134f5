/* SPDX-License-Identifier: Apache-2.0 */
/* cay pool keep: the process that fills pools. */
#include <signal.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "ops/pool/pool_keeper.h"

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cay_close) struct cay c = { 0 };
	char *argv[] = { "cay", "pool", "keep", NULL };
	bool replaced;

	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0)
		return -1;
	/* Nobody waits for the wardens: let the kernel reap them. */
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (chdir("/") < 0 || cli_open(&c, e) < 0 || op_pool_keep(&c, &replaced, e) < 0)
		return -1;
	if (replaced)
		(void)execv(c.programs.cay, argv);
	return 0;
}

const struct cmd cmd_pool_keep = {
	.name = "pool keep",
	.synopsis = "",
	.summary = "Make sandboxes ready ahead (cay pool set starts this by itself)",
	.run = run,
	.hidden = true,
};
