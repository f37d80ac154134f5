/* SPDX-License-Identifier: Apache-2.0 */
/* One command in several forks at once. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "ops/diff.h"
#include "store/state.h"

struct branch {
	int number; /* from 1 on; CAY_FORK inside */
	char id[ID_SIZE];
	pid_t pid;	 /* of the cay exec that runs it; 0: none */
	int out_fd;	 /* what it prints, both streams; FD_NONE: ended */
	struct buf line; /* the beginning of a line */
	bool ended;
	int code; /* -1: it was stopped, because another one had won or by somebody else */
	uint64_t start_ns, duration_us;
	struct diff_totals totals;
	bool kept;
};

struct explore_opts {
	char **argv; /* the command, NULL at the end */
	int argc;
	uint64_t timeout_ms; /* of each; 0: none */
	bool first_success;  /* stop the others when one has ended with 0 */
	bool quiet;
	int sig_fd;	      /* a signalfd: what comes there stops them all */
	const sigset_t *mask; /* what the commands are to have blocked */
};

struct explored {
	int winner; /* the first that ended with 0, or -1 */
	int signal; /* that stopped them all, or 0 */
};

/* Run it in all of them and pass on what they print, each line with its number before it. */
int explore_run(struct branch *b, unsigned n, const struct explore_opts *o, struct explored *ret,
		struct err *e);
