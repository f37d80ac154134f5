/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a sandbox, from the words of our own command line to its exit code. */
#pragma once

#include "cli/call/session.h"
#include "cli/cmd.h"
#include "cli/sandbox/sandbox_options.h"

/*
 * Run ctx->args with our stdin, stdout and stderr; how: warden_fd, and `started`. The exit code,
 * where the command does not exist or cannot be executed too (126, 127, after saying so); -1 and e
 * otherwise.
 */
int command_run(struct cmd_ctx *ctx, const struct session *how, const struct sandbox_opts *o,
		struct err *e);
/* The same for args[first...] with options that exec has; plan: its environment and labels. */
int command_run_at(struct cmd_ctx *ctx, int first, const struct session *how,
		   const struct sandbox_opts *o, const struct create_plan *plan, struct err *e);
