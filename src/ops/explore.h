/* SPDX-License-Identifier: Apache-2.0 */
/* One command in several forks of a sandbox at once, and how much each of them has changed. */
#pragma once

#include "link/call.h"
#include "ops/diff.h"

enum { EXPLORE_MOST = 256 };

/* A fork and its command. */
struct branch {
	int number; /* from 1 on; CAY_FORK inside */
	char id[ID_SIZE];
	/*
	 * As a shell would see it; 125: it was never run, 126 and 127: it cannot be executed, does
	 * not exist. -1: it was stopped, because another one had won, or because the sandbox ended.
	 */
	int code;
	char reason[32]; /* exit, signal, timeout, oom, disk; empty where there is no result */
	struct err why;	 /* why there is none; kind NONE: another one had won */
	unsigned denied; /* connections that the policy refused */
	uint64_t duration_us;
	struct diff_totals totals;
	bool kept; /* the caller's choice, for op_explore_keep() */
};

struct explore_spec {
	const char *source;	 /* a sandbox, of which a snapshot is taken, or a snapshot */
	unsigned count;		 /* 1 to EXPLORE_MOST */
	const char *name;	 /* of the forks: NAME-1, NAME-2 and so on; NULL: none */
	const char *const *argv; /* NULL-terminated */
	uint64_t timeout_ms;	 /* of each; 0: none */
	bool first_success;	 /* stop the others when one has ended with 0 */
	/* What a command prints, as it comes; and its end. Both may be NULL. */
	void (*output)(void *ctx, const struct branch *b, enum call_stream stream, struct str data);
	void (*ended)(void *ctx, const struct branch *b);
	void *ctx;
};

struct explored {
	struct branch *v;
	unsigned n;
	int winner; /* the first that ended with 0, an index; -1: none */
};

/*
 * Waits until all commands have ended. The forks run on then, all of them. On failure, and where
 * c->wait is cancelled or runs out while commands run, there are none; but with code
 * explore.not_compared the commands have ended and all forks are there.
 */
int op_explore(struct cay *c, const struct explore_spec *spec, struct explored *ret, struct err *e);
/* End the forks that are not `kept`. */
int op_explore_keep(struct cay *c, const struct explored *x, struct err *e);
/* Legal on one that is zero. */
void explored_done(struct explored *x);
DEFINE_AUTO(struct explored, explored_done)
