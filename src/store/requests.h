/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that made sandboxes, by the key that the client chose (Idempotency-Key). A row is
 * written in the transaction of its sandbox's row, so a request that is repeated after a crash or a
 * lost answer finds either both or neither.
 */
#pragma once

#include "base/sha256.h"
#include "store/catalog.h"

enum { REQUEST_KEY = 256, REQUEST_HOURS = 24 };

struct request_key {
	const char *key;
	int n;			   /* of several sandboxes in one request, from 0 */
	uint8_t hash[SHA256_SIZE]; /* of the request */
};

/* Inside the transaction of a sandbox's row. CONFLICT, code idempotency.taken, if the key is there.
 * Removes keys that are older than REQUEST_HOURS. */
int catalog_add_request(struct catalog *c, const struct sandbox_row *row, struct err *e);
/* The sandboxes of a request, in order: their number, 0 if there is none, -1. hash: its hash. */
int catalog_find_request(struct catalog *c, const char *owner, const char *key,
			 char (*ids)[ID_SIZE], int most, uint8_t hash[SHA256_SIZE], struct err *e);
