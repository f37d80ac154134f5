/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": find the nearest of some words, if one is near enough. */
#pragma once

enum { SUGGEST_MAX = 2 };

/* Optimal string alignment distance; SUGGEST_MAX + 1 for anything further. */
int suggest_distance(const char *a, const char *b);

/* The best candidate so far. Start with { .word = what the user wrote }. */
struct suggest {
	const char *word;
	const char *best; /* or NULL */
	int distance;
};

void suggest_offer(struct suggest *s, const char *candidate);
