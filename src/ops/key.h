/* SPDX-License-Identifier: Apache-2.0 */
/* API keys for the server. */
#pragma once

#include "ops/cay.h"
#include "store/keys.h"

enum { KEY_TEXT = sizeof "e2b_" + 40 };

/* What is said about a key. */
struct key_spec {
	const char *name;    /* same rules as sandbox names */
	const char *shares;  /* the key whose sandboxes are also this key's; NULL: none */
	uint64_t expires_ns; /* 0: never */
	struct key_limits limits;
};

/* ret_text is the only copy of the key's text: cay does not store it. */
int op_key_create(struct cay *c, const struct key_spec *spec, char ret_text[KEY_TEXT],
		  struct key_row *ret, struct err *e);
/* Change what `over` says, and the expiry unless it is NULL. Holds for running servers, too. */
int op_key_set(struct cay *c, const char *ref, const struct key_limits *over,
	       const uint64_t *expires_ns, struct key_row *ret, struct err *e);
/* What a server says about all keys. */
int op_key_server_limits(struct cay *c, const struct key_limits *l, struct err *e);
/* What holds for this key, all sources merged, and what its sandboxes take. */
int op_key_use(struct cay *c, const struct key_row *row, struct key_limits *ret,
	       struct key_use *ret_use, struct err *e);
int op_key_list(struct cay *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		struct err *e);
/* By name or id. A running server closes the key's connections within a second. */
int op_key_revoke(struct cay *c, const char *ref, struct key_row *ret, struct err *e);
struct json;
/* As an object. text: the key itself, or NULL. */
void json_put_limits(struct json *j, const struct key_limits *l);
void json_put_key(struct json *j, const struct key_row *row, const char *text);
/* A file in the state directory that is replaced after each change of the keys. */
#define KEYS_CHANGED_FILE "keys.changed"
