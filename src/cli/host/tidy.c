/* SPDX-License-Identifier: Apache-2.0 */
/* cay tidy: background work that keeps stacks of layers shallow. */
#include <sched.h>
#include <sys/resource.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "ops/flatten.h"

enum { NICE = 19 };

/* Lower our priority, whatever the parent's was: a copy may take seconds. */
static void step_back(void)
{
	const struct sched_param none = { 0 };

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };

	step_back();
	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0 || cli_open_state(&s, e) < 0)
		return -1;
	return op_flatten(&s, false, e);
}

const struct cmd cmd_tidy = {
	.name = "tidy",
	.synopsis = "",
	.summary = "Merge deep stacks of layers (cay snapshot starts this by itself)",
	.run = run,
	.hidden = true,
};
