/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line is a table: one row per command, one file per command. A command
 * declares its options as a table too; parsing, --help, completion and the man page's
 * synopsis all come from the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum opt_kind {
	OPT_FLAG,     /* bool * */
	OPT_TEXT,     /* const char ** */
	OPT_LIST,     /* struct opt_list * */
	OPT_DURATION, /* uint64_t *, milliseconds: 500ms, 10s, 5m, 1h, 1d; a bare number is seconds
		       */
	OPT_SIZE,     /* uint64_t *, bytes: 512M, 2G, 1.5G, 64K, 1T; a bare number is bytes */
	OPT_COUNT,    /* uint64_t *, 1 or more */
	OPT_NUMBER,   /* uint64_t *, thousandths: 2, 0.5, 1.25; more than 0 */
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

/* The input of every command. */
struct cmd_ctx {
	const struct cmd *cmd;
	bool json;
	bool json_result; /* of a command that runs others: JSON about the call, not on stdout */
	const char *json_file; /* file for JSON; or NULL */
	uint64_t json_fd;      /* descriptor for JSON; 0: none */
	bool quiet;
	bool color_out, color_err; /* decided by --color, NO_COLOR, TERM and isatty */
	char **args;		   /* positional, after options; "--" ends options and is dropped */
	int nargs;
	bool has_dashes; /* "--" was given; args from dashes_at on followed it */
	int dashes_at;
	const char *color; /* --color as given, or NULL */
	bool help;	   /* --help was given */
	bool usage;	   /* the error is a usage error */
};

struct cmd {
	const char *name;     /* one word, or two: a group and an action, "policy check" */
	const char *synopsis; /* "[options] ID -- CMD [ARG...]" */
	const char *summary;  /* one line */
	const char *details;  /* paragraphs, or NULL */
	const char *examples; /* lines, or NULL */
	/*
	 * Errors are returned in e. main prints them once and maps their kind to the exit code.
	 * runs_commands: every failure of cay exits with 125 instead (docker's convention). A
	 * result >= 0 is the exit code.
	 */
	int (*run)(struct cmd_ctx *ctx, struct err *e);
	struct opt *opts; /* ended by a row without a name, or NULL */
	bool runs_commands;
	bool data;	      /* accepts --json and -q */
	bool hidden;	      /* not in help or completion */
	const char *complete; /* what the positionals are: "sandbox", "file", "command", "a|b|c" */
	/*
	 * The positional after which all words belong to the command to run: 1 for run, 2 for exec.
	 * 0: options may appear anywhere before "--".
	 */
	int stop_at;
	bool raw; /* gets its arguments unparsed: no options, not even --help */
};

extern const struct cmd *const commands[]; /* ended by NULL */

/* Runs the whole program and returns the exit code. Uses the rows of commands[]. */
int cli_main(int argc, char **argv);
/* Finds the row named by the first one or two words; *ret_used is their number. Or NULL. */
const struct cmd *cmd_find(char *const *words, int n, int *ret_used);
/* The word of cmd after the group's name, or NULL if cmd is not in this group. */
const char *cmd_of_group(const struct cmd *cmd, const char *group);
bool cmd_is_group(const char *word);
/* The error for an unknown command, with the closest known one. Returns -1. */
int cmd_unknown(struct cmd_ctx *ctx, char *const *words, int n, struct err *e);

/* A usage error: the synopsis becomes its hint. Returns -1. */
int cmd_usage(struct cmd_ctx *ctx, struct err *e, const char *fmt, ...) ERR_FMT(3, 4);
/* Requires at least min positionals, which `what` names, and at most max (-1: any number). */
int cmd_need_args(struct cmd_ctx *ctx, int min, int max, const char *what, struct err *e);
/* Print an error on stderr, and with --json on stdout too. Returns the exit code for it. */
int cmd_report(const struct cmd_ctx *ctx, const struct err *e);

/* Print text from a sandbox or a user safely on a terminal: C0, C1 and DEL are escaped. */
void out_safe(const char *text);
