/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line is a table: one row per command, one file per command. A command
 * declares its options as a table too; parsing, --help, completion and the man page's
 * synopsis all come from the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum opt_kind {
	OPT_FLAG,     /* bool * */
	OPT_TEXT,     /* const char ** */
	OPT_LIST,     /* struct opt_list * */
	OPT_DURATION, /* uint64_t *, milliseconds: 500ms, 10s, 5m, 1h, 1d; a bare number is seconds
		       */
};

struct opt_list {
	const char **items; /* allocated */
	int n;
};

struct opt {
	const char *name; /* long, without dashes */
	char letter;	  /* or 0 */
	enum opt_kind kind;
	const char *arg; /* name of the value in help, or NULL */
	const char *help;
	void *value;
};

/* What every command gets. */
struct cmd_ctx {
	const struct cmd *cmd;
	bool json;
	bool quiet;
	bool color_out, color_err; /* decided by --color, NO_COLOR, TERM and isatty */
	char **args;		   /* positional, after options; "--" ends options and is dropped */
	int nargs;
	bool has_dashes; /* "--" was given: args from dashes_at on came after it */
	int dashes_at;
};

struct cmd {
	const char *name;
	const char *synopsis; /* "[options] ID -- CMD [ARG...]" */
	const char *summary;  /* one line */
	const char *details;  /* paragraphs, or NULL */
	const char *examples; /* lines, or NULL */
	/*
	 * Errors are returned in e and printed once, by main, which maps their kind to the exit
	 * code. runs_commands: every failure of ours is 125 instead (docker's convention).
	 * Result >= 0 is the exit code.
	 */
	int (*run)(struct cmd_ctx *ctx, struct err *e);
	struct opt *opts; /* terminated by a row without a name, or NULL */
	bool runs_commands;
	bool data;	      /* takes --json and -q */
	bool hidden;	      /* not in help or completion */
	const char *complete; /* what positionals are: "sandbox", "file", "command", or NULL */
};

extern const struct cmd *const commands[]; /* terminated by NULL */

/* Text that came from a sandbox or a user, safe for a terminal: C0, C1 and DEL escaped. */
void out_safe(const char *text);
