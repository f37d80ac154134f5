/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses outside, by c-ares and the host's own nameservers. Answers are kept for a
 * while; several who ask for one name wait for one answer.
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

/* Embedded by whoever waits. */
struct resolve_wait {
	struct resolve_wait *next;
	struct lookup *lookup; /* NULL: waits for nothing */
	void (*fn)(struct resolve_wait *w, const struct resolve_answer *a);
};

struct resolver;

/* servers: "address[:port],…". */
int resolver_new(struct loop *l, const char *servers, struct resolver **ret);
/* fn runs later, or within this call where the answer is known. 0 or -errno: too many wait. */
int resolve(struct resolver *r, const char *name, struct resolve_wait *w,
	    void (*fn)(struct resolve_wait *, const struct resolve_answer *));
void resolve_cancel(struct resolve_wait *w);
