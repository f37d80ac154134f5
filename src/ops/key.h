/* SPDX-License-Identifier: Apache-2.0 */
/* API keys for the server. */
#pragma once

#include "ops/cay.h"
#include "store/keys.h"

enum { KEY_TEXT = sizeof "e2b_" + 40 };

/*
 * ret_text is the only copy of the key's text: cay does not store it. name: same rules as sandbox
 * names.
 */
int op_key_create(struct cay *c, const char *name, char ret_text[KEY_TEXT], struct key_row *ret,
		  struct err *e);
int op_key_list(struct cay *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		struct err *e);
/* By name or id. A running server closes the key's connections within a second. */
int op_key_revoke(struct cay *c, const char *ref, struct key_row *ret, struct err *e);
struct json;
/* As an object. text: the key itself, or NULL. */
void json_put_key(struct json *j, const struct key_row *row, const char *text);
/* A file in the state directory that is replaced after each change of the keys. */
#define KEYS_CHANGED_FILE "keys.changed"
