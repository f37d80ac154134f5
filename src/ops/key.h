/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for programs that use the server. */
#pragma once

#include "ops/cay.h"
#include "store/keys.h"

enum { KEY_TEXT = sizeof "e2b_" + 40 };

/* The text of the key is told here and never again. name: as of sandboxes. */
int op_key_create(struct cay *c, const char *name, char ret_text[KEY_TEXT], struct key_row *ret,
		  struct err *e);
int op_key_list(struct cay *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		struct err *e);
/* By name or id. A server that runs ends what the key has open, within a second. */
int op_key_revoke(struct cay *c, const char *ref, struct key_row *ret, struct err *e);
/* A file of the state directory that is replaced after each change of the keys. */
#define KEYS_CHANGED_FILE "keys.changed"
