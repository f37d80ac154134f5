/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns. Of hosts, by label: '*' stands for any text within one label, '**' as a whole label
 * for one or more labels. *.example.com is api.example.com, but neither example.com nor
 * a.b.example.com; **.example.com is both of the latter's kind. Of paths, by segment: '*' for any
 * text within a segment, '**' as a whole segment for any number of them, also none.
 * Matching takes time in proportion to pattern times text and no memory.
 */
#pragma once

#include "wire/host.h"

/* Canonical form of a pattern of hosts. 0, or -EINVAL and the reason in *ret_why. */
int glob_host_parse(struct str text, char out[HOST_TEXT], const char **ret_why);
/* Both in canonical form. */
bool glob_host(struct str pattern, struct str name);
bool glob_path(struct str pattern, struct str path);
