/* SPDX-License-Identifier: Apache-2.0 */
/* The options that a sandbox was made with, as the JSON object that its row keeps. */
#pragma once

#include <jansson.h>

#include "ops/create/create_check.h"
#include "wire/json_write.h"

/* Allocated. NULL: no memory. */
char *options_write(const struct create_plan *p);
/* create_limits.c: "limits", an object of those that are set; nothing for none. */
void limits_options(const struct limits_spec *l, struct json *j);

/* An object; NULL where there are none. Owned. */
json_t *options_load(const struct sandbox_row *row);
static inline void options_free(json_t *spec)
{
	json_decref(spec);
}
DEFINE_AUTO_PTR(json_t, options_free)
/* When its files of the host were as the sandbox sees them; 0: not known. spec may be NULL. */
uint64_t options_seen_ns(const char *spec);
/* Text at key (NULL: of v itself), also where it was kept as {"b64":…}; NULL: none. Borrowed. */
const char *options_text(const json_t *v, const char *key);
/* Host path of the first of its dirs, or NULL. Borrowed. */
const char *options_first_dir(const json_t *spec);
/* want: k=v, or k for any value. */
bool options_has_label(const json_t *spec, const char *want);
