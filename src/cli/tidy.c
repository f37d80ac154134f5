/* SPDX-License-Identifier: Apache-2.0 */
/* cay tidy: what is done in the background, so that stacks of layers stay shallow. */
#include "cli/tidy.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "store/flatten.h"
#include "store/snapshots.h"

enum { NICE = 10, URGENT = LIMIT_LAYERS - 2 };

int tidy_now(struct cli_store *s, bool wait, struct err *e)
{
	auto_close int lock = FD_NONE;

	if (layers_lock(&s->state, wait, &lock, e) < 0)
		return wait ? -1 : 0;
	return flatten_all(s->catalog, &s->state, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };

	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0 || cli_store_open(&s, e) < 0)
		return -1;
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	return tidy_now(&s, false, e);
}

const struct cmd cmd_tidy = {
	.name = "tidy",
	.synopsis = "",
	.summary = "Merge deep stacks of layers (cay snapshot starts this by itself)",
	.run = run,
	.hidden = true,
};

/* Nobody waits for it, and it outlives us. */
static void spawn_detached(const char *state_dir)
{
	char program[LIMIT_PATH], state[LIMIT_PATH + 16];
	char *argv[] = { "cay", "tidy", NULL }, *envp[] = { state, NULL };
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	pid_t pid;

	if (n < 0 || posix_spawn_file_actions_init(&fa) != 0)
		return;
	program[n] = '\0';
	(void)snprintf(state, sizeof state, "CAY_STATE=%s", state_dir);
	for (int i = 0; i < 3; i++)
		(void)posix_spawn_file_actions_addopen(&fa, i, "/dev/null", i ? O_WRONLY : O_RDONLY,
						       0);
	if (posix_spawnattr_init(&at) == 0) {
		(void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID);
		(void)posix_spawn(&pid, program, &fa, &at, argv, envp);
		(void)posix_spawnattr_destroy(&at);
	}
	(void)posix_spawn_file_actions_destroy(&fa);
}

int tidy_stack(struct cli_store *s, size_t depth, struct err *e)
{
	if (depth >= URGENT)
		return tidy_now(s, true, e);
	if (depth >= FLATTEN_FROM && depth % FLATTEN_SPARE == 0)
		spawn_detached(s->state.dir);
	return 0;
}
