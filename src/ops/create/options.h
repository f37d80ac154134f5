/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a sandbox, as the JSON object in its row. */
#pragma once

#include <jansson.h>

#include "ops/create/create_check.h"
#include "wire/json_write.h"

/* Allocated; NULL if out of memory. */
char *options_write(const struct create_plan *p);
/*
 * create_limits.c: writes "limits", an object of the limits that are set; nothing if none is set.
 */
void limits_options(const struct limits_spec *l, struct json *j);

/* Returns an owned object, or NULL if there are no options. */
json_t *options_load(const struct sandbox_row *row);
static inline void options_free(json_t *spec)
{
	json_decref(spec);
}
DEFINE_AUTO_PTR(json_t, options_free)
/* The time from which the sandbox sees the host's files; 0: unknown. spec may be NULL. */
uint64_t options_seen_ns(const char *spec);
/*
 * Text at key (key NULL: v itself), also if stored as {"b64":…}. NULL if there is none. Borrowed.
 */
const char *options_text(const json_t *v, const char *key);
/* Host path of its first dir, or NULL. Borrowed. */
const char *options_first_dir(const json_t *spec);
/* want: k=v, or k for any value. */
bool options_has_label(const json_t *spec, const char *want);
