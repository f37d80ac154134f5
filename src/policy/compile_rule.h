/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the compiler; for compile*.c only. */
#pragma once

#include "policy/doc.h"

/* The document being compiled, and the current place in it. */
struct compile {
	const struct doc *d;
	struct err *e;
	char where[64];	    /* "rules[3]", or "" at the top */
	const char *prefix; /* prefix of rule ids: "coding/", or "" */
	const char
		*origin; /* origin of the rules if lines do not apply: "preset coding"; or NULL */
};

/* "FILE:LINE:COLUMN: where: message". Returns -1. */
int compile_fail(struct compile *c, const struct node *at, const char *fmt, ...) ERR_FMT(3, 4);
/* The values of a map: ret[i] for key names[i], or NULL. Other keys are errors. */
int compile_map(struct compile *c, const struct node *map, const char *const *names, size_t n,
		const struct node **ret);
/* The index of a word in the list, or -1. */
int compile_word(struct compile *c, const struct node *n, const char *what,
		 const char *const *words, size_t nwords);
/* Call fn for one text, or for each item of a list. The list must not be empty. */
int compile_items(struct compile *c, const struct node *n, const char *what,
		  int (*fn)(struct compile *c, const struct node *item, void *ctx), void *ctx);
int compile_limits(struct compile *c, const struct node *map, bool of_rule,
		   struct policy_limits *l);
/* Append the limits that are set. 0 or -errno. */
int limits_put(struct buf *out, const struct policy_limits *l);

/* A rule before it is written. */
struct draft {
	enum policy_action action;
	char id[LIMIT_NAME + 1];
	char origin[256];
	struct buf hosts, addresses, ports, methods, paths; /* encoded fields */
	unsigned nports, naddresses, nhosts;
	unsigned protocols, lenient;
	struct policy_limits limits;
};

void draft_init(struct draft *r);
void draft_done(struct draft *r);
DEFINE_AUTO(struct draft, draft_done)
/* Add a host pattern. 0, or -EINVAL and the reason. */
int draft_host(struct draft *r, struct str text, const char **ret_why);
/* 0, or -EINVAL and the reason. */
int draft_address(struct draft *r, struct str text, const char **ret_why);
int draft_ports(struct draft *r, uint16_t first, uint16_t last);
/* Add defaults and append the rule. 0, -EINVAL and the reason, or another error. */
int draft_put(struct draft *r, struct buf *out, const char **ret_why);

/* Compile the rule in a map and append it to out. */
int compile_rule(struct compile *c, const struct node *map, unsigned number, bool needs_action,
		 struct buf *out);
