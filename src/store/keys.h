/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of programs that use the server: the catalog knows their hashes. A key has 160 random bits,
 * so a slow hash would protect nothing.
 */
#pragma once

#include "base/sha256.h"
#include "store/catalog.h"

enum { KEYS_MOST = 4096, KEY_SHOWN = 8 };

struct key_row {
	char id[ID_SIZE]; /* what owns sandboxes; never used again */
	char name[64];
	char shown[KEY_SHOWN + 1]; /* how the key begins */
	uint8_t digest[SHA256_SIZE];
	uint64_t created_ns;
};

/* CONFLICT where the name is taken, LIMIT above KEYS_MOST. Sets created_ns. */
int catalog_add_key(struct catalog *c, struct key_row *row, struct err *e);
/* By name or id; fills ret. NOT_FOUND. */
int catalog_del_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e);
/* Oldest first; fn returns non-zero to stop. */
int catalog_each_key(struct catalog *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		     struct err *e);
