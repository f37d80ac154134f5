/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API keys of the server: the catalog stores only their hashes. A key has 160 random bits, so a
 * slow hash would add nothing.
 */
#pragma once

#include "base/sha256.h"
#include "store/catalog.h"

enum { KEYS_MOST = 4096, KEY_SHOWN = 8 };

struct key_row {
	char id[ID_SIZE]; /* owner id of its sandboxes; never reused */
	char name[64];
	char shown[KEY_SHOWN + 1]; /* the first characters of the key */
	uint8_t digest[SHA256_SIZE];
	uint64_t created_ns;
};

/* CONFLICT if the name is taken, LIMIT above KEYS_MOST. Sets created_ns. */
int catalog_add_key(struct catalog *c, struct key_row *row, struct err *e);
/* By name or id; fills ret. NOT_FOUND. */
int catalog_del_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e);
/* Oldest first; fn returns non-zero to stop. */
int catalog_each_key(struct catalog *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		     struct err *e);
