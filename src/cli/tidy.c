/* SPDX-License-Identifier: Apache-2.0 */
/* cay tidy: what is done in the background, so that stacks of layers stay shallow. */
#include "cli/tidy.h"

#include <sched.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/detached.h"
#include "store/flatten.h"
#include "store/snapshots.h"

enum { NICE = 19, URGENT = LIMIT_LAYERS - 2 };

int tidy_now(struct cli_store *s, bool wait, struct err *e)
{
	auto_close int lock = FD_NONE;

	if (layers_lock(&s->state, wait, &lock, e) < 0)
		return wait ? -1 : 0;
	return flatten_all(s->catalog, &s->state, e);
}

/* Whatever priority the command had that started it: it may copy for seconds. */
static void step_back(void)
{
	const struct sched_param none = { 0 };

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };

	step_back();
	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0 || cli_store_open(&s, e) < 0)
		return -1;
	return tidy_now(&s, false, e);
}

const struct cmd cmd_tidy = {
	.name = "tidy",
	.synopsis = "",
	.summary = "Merge deep stacks of layers (cay snapshot starts this by itself)",
	.run = run,
	.hidden = true,
};

int tidy_stack(struct cli_store *s, size_t depth, struct err *e)
{
	if (depth >= URGENT)
		return tidy_now(s, true, e);
	s->deep |= depth >= FLATTEN_FROM && depth % FLATTEN_SPARE == 0;
	return 0;
}

void tidy_start(const char *state_dir)
{
	static const char *const words[] = { "tidy", NULL };

	detached_start(state_dir, words);
}
