/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a create_spec completely before anything is created. Errors are INVALID, with the field of
 * the spec (err.field).
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "ops/cay.h"
#include "ops/create/create_spec.h"
#include "wire/proto.h"

struct plan_mount {
	char *path; /* outside: absolute, without symbolic links */
	char *dest; /* inside: absolute, normal */
	bool ro;
	uid_t owner; /* of path */
};

struct create_plan {
	const struct create_spec *spec; /* borrowed */
	const char *template_;
	struct plan_mount *mounts; /* each mount comes before mounts below it */
	int nmounts;
	char *first_dir;  /* dest of the spec's first dir, or NULL */
	const char **env; /* K=V, each key once; texts borrowed */
	int nenv;
	const char **labels; /* k=v, each key once */
	int nlabels;
	enum profile profile;
	enum trace_level trace;
	uint64_t seen_ns; /* time from which the sandbox sees the host's files; 0: unknown */
};

int create_check(const struct cay *c, const struct create_spec *spec, struct create_plan *ret,
		 struct err *e);
void create_plan_done(struct create_plan *p);
DEFINE_AUTO(struct create_plan, create_plan_done)

/* create_limits.c: INVALID if a value is implausibly small or too large. */
int create_limits_check(const struct limits_spec *l, struct err *e);
/* Adds fields of MSG_C_BUILD. Returns 0 or -errno. */
int create_limits_put(const struct limits_spec *l, struct buf *b);
