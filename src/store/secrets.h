/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that clients of the server store: a name, a value, and metadata. The catalog, which only
 * its owner can read, has the value; nothing here gives it back.
 */
#pragma once

#include "store/catalog.h"

enum { SECRETS_MOST = 1000, SECRET_VALUE = 64 * 1024, SECRET_METADATA = 16 * 1024 };

struct secret_row {
	char id[ID_SIZE];
	char name[128];
	uint64_t version, created_ns, updated_ns;
	const char *metadata; /* a JSON object; borrowed */
};

/* owner: the id of a key, or "": the host's user. Sets the times. CONFLICT if the name is taken,
 * LIMIT above SECRETS_MOST of one owner. */
int catalog_add_secret(struct catalog *c, const char *owner, struct secret_row *row,
		       const char *value, struct err *e);
/* By id or name. metadata: NULL keeps what is there. NOT_FOUND. */
int catalog_set_secret(struct catalog *c, const char *owner, const char *ref, const char *value,
		       const char *metadata, struct err *e);
int catalog_del_secret(struct catalog *c, const char *owner, const char *ref, struct err *e);
/* Oldest first, made after `after_ns`; ref: only this one, by id or name. fn returns non-zero to
 * stop. */
int catalog_each_secret(struct catalog *c, const char *owner, const char *ref, uint64_t after_ns,
			int (*fn)(void *ctx, const struct secret_row *row), void *ctx,
			struct err *e);
