/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a sandbox, from the words of our own command line to its exit code. */
#pragma once

#include "cli/call/call_stdio.h"
#include "cli/cmd.h"
#include "cli/sandbox/sandbox_options.h"

struct command {
	struct link *link; /* borrowed */
	const struct sandbox_opts *o;
	const struct create_plan *plan; /* environment and labels; NULL: the sandbox's own */
	int first;			/* of ctx->args */
	bool detached;			/* do not wait for it: print its number */
	void (*started)(void *ctx);	/* or NULL */
	void *ctx;
};

/*
 * Run ctx->args[first...] with our stdin, stdout and stderr. The exit code, where the command does
 * not exist or cannot be executed too (126, 127, after saying so); -1 and e otherwise.
 */
int command_run(struct cmd_ctx *ctx, const struct command *c, struct err *e);
/* What a call that has ended means for our exit code, after saying what is to be said. */
int command_exit(const struct call_outcome *outcome, bool json);
