/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the differing lines of two texts: Myers' algorithm in linear space (An O(ND) Difference
 * Algorithm and Its Variations, 1986, section 4b). Lines that the other text lacks are set aside
 * first, because they have changed in any case. The result is the shortest edit. If finding it
 * would take too long, that stretch counts as replaced.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Lines with their newlines; the last may have none. */
struct lines {
	struct str text; /* borrowed; below 4 GiB */
	uint32_t *at;	 /* where line i begins; at[n] is the end */
	uint32_t n;
};

int lines_split(struct str text, struct lines *ret);
void lines_done(struct lines *l);
DEFINE_AUTO(struct lines, lines_done)

static inline struct str lines_get(const struct lines *l, uint32_t first, uint32_t n)
{
	return (struct str){ l->text.p + l->at[first], l->at[first + n] - l->at[first] };
}

/* n_a lines of a, starting at line a, became n_b lines of b, starting at line b. */
struct edit {
	uint32_t a, n_a, b, n_b;
};

struct edits {
	struct edit *v;
	uint32_t n;
	uint32_t added, removed; /* lines */
};

/* Edits in order; at least one equal line is between two edits. Returns 0 or -ENOMEM. */
int lines_diff(const struct lines *a, const struct lines *b, struct edits *ret);
void edits_done(struct edits *e);
DEFINE_AUTO(struct edits, edits_done)
