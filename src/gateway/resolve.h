/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolve names with c-ares and the host's name servers. Answers are cached. Several lookups of one
 * name share one query.
 */
#pragma once

#include "loop/loop.h"
#include "wire/host.h"

enum { RESOLVE_ADDRS = 8 };

struct resolve_answer {
	int status; /* 0, -ENOENT: no such name, -ETIMEDOUT, -EIO */
	int n;
	struct ip addrs[RESOLVE_ADDRS]; /* IPv6 and IPv4 in turn */
};

/* One waiting lookup; embedded in its owner. */
struct resolve_wait {
	struct resolve_wait *next;
	struct lookup *lookup; /* NULL: not waiting */
	void (*fn)(struct resolve_wait *w, const struct resolve_answer *a);
};

struct resolver;

/* servers: "address[:port],…". */
int resolver_new(struct loop *l, const char *servers, struct resolver **ret);
/* Calls fn later, or at once if the answer is cached. 0, or -errno if too many lookups wait. */
int resolve(struct resolver *r, const char *name, struct resolve_wait *w,
	    void (*fn)(struct resolve_wait *, const struct resolve_answer *));
void resolve_cancel(struct resolve_wait *w);
