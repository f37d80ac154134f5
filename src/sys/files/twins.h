/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with several names, one of which has already been copied: the copy of the next name is a
 * link.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { TWINS_BUCKETS = 4096 };

struct twin;
struct twins {
	struct twin *buckets[TWINS_BUCKETS];
	int n;
};

/*
 * The path under which it was copied, or NULL; ret_note (may be NULL) gets the note of that copy.
 */
const char *twins_find(const struct twins *t, dev_t dev, ino_t ino, uint64_t *ret_note);
/* -E2BIG for more than LIMIT_TREE_LINKS. */
int twins_add(struct twins *t, dev_t dev, ino_t ino, const char *dir, const char *name,
	      uint64_t note);
void twins_done(struct twins *t);
