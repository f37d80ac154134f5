/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three-way merge of texts, like git. Changes of both sides that neither overlap nor touch are all
 * taken; equal changes once. Where the sides conflict, the result contains both, with the base
 * between them, in conflict markers.
 */
#pragma once

#include "base/buf.h"

struct merge_names {
	const char *ours, *theirs;
};

/* True if a merge is possible: all are text, or one side is unchanged, or both sides are equal. */
bool merge_is_possible(struct str base, struct str ours, struct str theirs);
/* Appends to out. Returns the number of conflicts, or -errno. */
int merge_texts(struct str base, struct str ours, struct str theirs,
		const struct merge_names *names, struct buf *out);
