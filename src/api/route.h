/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes: one row per method and path. */
#pragma once

#include "base/str.h"

struct api_request;

enum route_flags {
	ROUTE_OPEN = 1,	   /* needs no key */
	ROUTE_BODY = 2,	   /* has a JSON body */
	ROUTE_ADMIN = 4,   /* only for the host's user, by the unix socket */
	ROUTE_ONCE = 8,	   /* takes an Idempotency-Key */
	ROUTE_NATIVE = 16, /* is the first member of a struct v1_route (api/v1/doc.h) */
	/*
	 * The scope that a key needs (store/key_limits.h). Without one of these: `read` for GET,
	 * else `use`.
	 */
	ROUTE_CREATES = 32, /* also counted by the key's rate */
	ROUTE_NETWORK = 64,
	ROUTE_SNAPSHOT = 128,
	ROUTE_USES = 256, /* a GET that shows what is inside, or reaches into it */
};

struct route {
	const char *method;
	const char *path; /* "{id}" and "{sub}" are one segment each */
	const char *job;  /* the kind of job that answers it, or NULL: */
	void (*handle)(struct api_request *q);
	unsigned flags;
};

/* The segments of a path that its row leaves open, decoded. */
struct route_params {
	char id[64], sub[64];
};

extern const struct route routes[];
extern const size_t nroutes;

/* Whether a raw path is that of this row; fills p if so. */
bool route_fits(const struct route *row, struct str path, struct route_params *p);
/*
 * The row of a method and a raw path, with its open segments. NULL: none; *ret_other then says
 * whether another method has this path.
 */
const struct route *route_find(const struct route *rows, size_t n, struct str method,
			       struct str path, struct route_params *p, bool *ret_other);
