/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a sandbox, from the words of our own command line to its exit code. */
#pragma once

#include "cli/cmd.h"
#include "cli/sandbox_options.h"

/*
 * Run ctx->args through a connection to the sandbox's warden; `later` as in a session. The exit
 * code, where the command does not exist or cannot be executed too (126, 127, after saying so); -1
 * and e otherwise.
 */
int command_run(struct cmd_ctx *ctx, int warden_fd, const struct sandbox_opts *o,
		void (*later)(void *ctx), uint64_t later_ms, void *later_ctx, struct err *e);
/* The same for args[first...] with options that exec has; plan: its environment and labels. */
int command_run_at(struct cmd_ctx *ctx, int first, int warden_fd, const struct sandbox_opts *o,
		   const struct sandbox_plan *plan, struct err *e);
