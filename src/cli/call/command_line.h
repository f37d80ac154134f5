/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a sandbox, from our command line to the exit code. */
#pragma once

#include "cli/call/call_stdio.h"
#include "cli/cmd.h"
#include "cli/sandbox/sandbox_options.h"

struct command {
	struct link *link; /* borrowed */
	const struct sandbox_opts *o;
	const struct create_plan *plan; /* environment and labels; NULL: the sandbox's */
	int first;			/* index in ctx->args */
	bool detached;			/* do not wait: print the call number */
	void (*started)(void *ctx);	/* or NULL */
	void *ctx;
};

/*
 * Run ctx->args[first...] with our stdin, stdout and stderr. Returns the exit code; also 126 or
 * 127, with a message, if the command is not executable or does not exist. Otherwise -1 and e.
 */
int command_run(struct cmd_ctx *ctx, const struct command *c, struct err *e);
/* Map an ended call to our exit code, and print what the user must know. */
int command_exit(const struct call_outcome *outcome, bool json);
