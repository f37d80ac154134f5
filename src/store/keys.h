/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API keys of the server: the catalog stores only their hashes. A key has 160 random bits, so a
 * slow hash would add nothing.
 */
#pragma once

#include "base/sha256.h"
#include "store/catalog.h"
#include "store/key_limits.h"

enum { KEYS_MOST = 4096, KEY_SHOWN = 8 };

struct key_row {
	char id[ID_SIZE];    /* never reused */
	char owner[ID_SIZE]; /* of its sandboxes: its own id, or that of the key that it shares */
	char name[64];
	char shown[KEY_SHOWN + 1]; /* the first characters of the key */
	uint8_t digest[SHA256_SIZE];
	uint64_t created_ns, expires_ns; /* expires_ns 0: never */
	struct key_limits limits;	 /* what was said about this key */
	bool damaged;			 /* its limits cannot be read: it may do nothing */
};

/*
 * CONFLICT if the name is taken, LIMIT above KEYS_MOST. Sets created_ns. shares: name or id of the
 * key whose sandboxes are also this key's; NULL: none.
 */
int catalog_add_key(struct catalog *c, struct key_row *row, const char *shares, struct err *e);
/* By name or id; fills ret. Also deletes keys that share it. NOT_FOUND. */
int catalog_del_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e);
/* Take over what `over` says; expires_ns unless it is NULL. Fills ret. NOT_FOUND. */
int catalog_set_key(struct catalog *c, const char *ref, const struct key_limits *over,
		    const uint64_t *expires_ns, struct key_row *ret, struct err *e);
/* Oldest first; fn returns non-zero to stop. */
int catalog_each_key(struct catalog *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		     struct err *e);

/* What a server says about all keys; replaces what an earlier server said. */
int catalog_set_server_limits(struct catalog *c, const struct key_limits *l, struct err *e);
int catalog_server_limits(struct catalog *c, struct key_limits *ret, struct err *e);
/* What holds for the sandboxes of an owner, all sources merged. NULL, unknown: the server's. */
int catalog_owner_limits(struct catalog *c, const char *owner, struct key_limits *ret,
			 struct err *e);
/* What the living sandboxes of an owner take. */
int catalog_owner_use(struct catalog *c, const char *owner, struct key_use *ret, struct err *e);
/*
 * Whether this owner may have one sandbox more. Exact only within the transaction that adds it, as
 * in catalog_add_sandbox(). Errors as of key_limits_admit().
 */
int catalog_admit(struct catalog *c, const char *owner, const struct key_use *more, struct err *e);
/* The same for a row that is to be added; fills ret with what it takes. */
int catalog_admit_row(struct catalog *c, const struct sandbox_row *row, struct key_use *ret,
		      struct err *e);
