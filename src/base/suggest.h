/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of a few words, only where it is near. */
#pragma once

enum { SUGGEST_MAX = 2 };

/* Optimal string alignment distance; SUGGEST_MAX + 1 stands for anything further. */
int suggest_distance(const char *a, const char *b);

/* The best so far. Start with { .word = what was written }. */
struct suggest {
	const char *word;
	const char *best; /* or NULL */
	int distance;
};

void suggest_offer(struct suggest *s, const char *candidate);
