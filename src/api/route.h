/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes: one row per method and path. */
#pragma once

#include "base/str.h"

struct api_request;

enum route_flags {
	ROUTE_OPEN = 1, /* needs no key */
	ROUTE_BODY = 2, /* has a JSON body */
	/*
	 * The scope that a key needs (store/key_limits.h). Without one of these: `read` for GET,
	 * else `use`.
	 */
	ROUTE_CREATES = 4, /* also counted by the key's rate */
	ROUTE_NETWORK = 8,
	ROUTE_SNAPSHOT = 16,
};

struct route {
	const char *method;
	const char *path; /* "{id}" is one segment */
	const char *job;  /* the kind of job that answers it, or NULL: */
	void (*handle)(struct api_request *q);
	unsigned flags;
};

extern const struct route routes[];
extern const size_t nroutes;

/*
 * The row of a method and a raw path, with the decoded segment in id (size bytes). NULL: none;
 * *ret_other then says whether another method has this path.
 */
const struct route *route_find(const struct route *rows, size_t n, struct str method,
			       struct str path, char *id, size_t size, bool *ret_other);
