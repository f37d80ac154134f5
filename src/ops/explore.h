/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one command in several forks of a sandbox at once, and measures what each fork changed. */
#pragma once

#include "link/call.h"
#include "ops/diff.h"

enum { EXPLORE_MOST = 256 };

/* One fork and its command. */
struct branch {
	int number; /* starts at 1; CAY_FORK inside */
	char id[ID_SIZE];
	/*
	 * Exit code as a shell reports it; 125: never ran; 126: not executable; 127: does not
	 * exist. -1: stopped, because another branch won or the sandbox ended.
	 */
	int code;
	char reason[32]; /* exit, signal, timeout, oom, disk; empty without a result */
	struct err why;	 /* why there is no result; kind NONE: another branch won */
	unsigned denied; /* connections denied by the policy */
	uint64_t duration_us;
	struct diff_totals totals;
	bool kept; /* set by the caller for op_explore_keep() */
};

struct explore_spec {
	const char *source;	 /* a snapshot, or a sandbox to take a snapshot of */
	unsigned count;		 /* 1 to EXPLORE_MOST */
	const char *name;	 /* names of the forks: NAME-1, NAME-2 and so on; NULL: none */
	const char *const *argv; /* NULL-terminated */
	uint64_t timeout_ms;	 /* per command; 0: none */
	bool first_success;	 /* stop the other branches after the first exit code 0 */
	/* Called for output as it arrives, and at the end of a command. Both may be NULL. */
	void (*output)(void *ctx, const struct branch *b, enum call_stream stream, struct str data);
	void (*ended)(void *ctx, const struct branch *b);
	void *ctx;
};

struct explored {
	struct branch *v;
	unsigned n;
	int winner; /* index of the first branch that exited with 0; -1: none */
};

/*
 * Waits until all commands have ended. All forks keep running. On failure, or if c->wait is
 * cancelled or expires while commands run, all forks are removed. Exception: with code
 * explore.not_compared the commands have ended and all forks exist.
 */
int op_explore(struct cay *c, const struct explore_spec *spec, struct explored *ret, struct err *e);
/* End the forks whose `kept` is false. */
int op_explore_keep(struct cay *c, const struct explored *x, struct err *e);
/* Legal on a zeroed struct. */
void explored_done(struct explored *x);
DEFINE_AUTO(struct explored, explored_done)
