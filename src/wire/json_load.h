/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON from a client: strict, with bounded depth. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { JSON_LOAD_DEPTH = 32 };

/*
 * Returns an object, which the caller owns. NULL for anything else, for duplicate keys, for invalid
 * UTF-8 and for more than JSON_LOAD_DEPTH levels.
 */
json_t *json_load_object(struct str text);
static inline void json_free(json_t *v)
{
	json_decref(v);
}
DEFINE_AUTO_PTR(json_t, json_free)
