/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines of two texts differ: Myers' algorithm in linear space (An O(ND) Difference
 * Algorithm and Its Variations, 1986, section 4b). Lines that the other text does not have at
 * all are set aside first, as they are changed whatever else is. The result is the shortest
 * edit, except where texts differ so much that finding it would take long: then the stretch
 * in question counts as replaced.
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

/* n_a lines of a from line a on have become n_b lines of b from line b on. */
struct edit {
	uint32_t a, n_a, b, n_b;
};

struct edits {
	struct edit *v;
	uint32_t n;
	uint32_t added, removed; /* lines */
};

/* In order; between two edits lies at least one line that is the same. 0 or -ENOMEM. */
int lines_diff(const struct lines *a, const struct lines *b, struct edits *ret);
void edits_done(struct edits *e);
DEFINE_AUTO(struct edits, edits_done)
