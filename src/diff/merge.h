/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three-way merge of texts, as git does it: changes of both sides that neither overlap nor
 * touch are both taken, equal ones once. Where they differ the result holds both, with the
 * base between them, in conflict markers.
 */
#pragma once

#include "base/buf.h"

struct merge_names {
	const char *ours, *theirs;
};

/* Whether lines may decide: all are texts, or one side is as it was, or both have become the same.
 */
bool merge_is_possible(struct str base, struct str ours, struct str theirs);
/* Appends to out. The number of conflicts, or -errno. */
int merge_texts(struct str base, struct str ours, struct str theirs,
		const struct merge_names *names, struct buf *out);
