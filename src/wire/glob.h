/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for hosts and paths.
 *
 * Hosts match by label. '*' matches any text within one label; '**' as a whole label matches one or
 * more labels. *.example.com matches api.example.com, but not example.com and not a.b.example.com.
 * **.example.com matches a.b.example.com too.
 *
 * Paths match by segment. '*' matches any text within a segment; '**' as a whole segment matches
 * zero or more segments.
 *
 * Matching takes time proportional to pattern times text, and no memory.
 */
#pragma once

#include "wire/host.h"

/* Canonical form of a host pattern. 0, or -EINVAL with the reason in *ret_why. */
int glob_host_parse(struct str text, char out[HOST_TEXT], const char **ret_why);
/* Both arguments in canonical form. */
bool glob_host(struct str pattern, struct str name);
bool glob_path(struct str pattern, struct str path);
