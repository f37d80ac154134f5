/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

enum { WORD_MAX = 40, FAR = SUGGEST_MAX + 1 };

static int min2(int a, int b)
{
	return a < b ? a : b;
}

int suggest_distance(const char *a, const char *b)
{
	int rows[3][WORD_MAX + 1];
	int *before = rows[0], *last = rows[1], *now = rows[2];
	int na = (int)strnlen(a, WORD_MAX + 1), nb = (int)strnlen(b, WORD_MAX + 1);

	if (na > WORD_MAX || nb > WORD_MAX)
		return FAR;
	for (int j = 0; j <= nb; j++)
		last[j] = j;
	for (int i = 1; i <= na; i++) {
		int *spare = before;

		now[0] = i;
		for (int j = 1; j <= nb; j++) {
			now[j] = min2(min2(last[j], now[j - 1]) + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min2(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return min2(last[nb], FAR);
}

void suggest_offer(struct suggest *s, const char *candidate)
{
	int d = suggest_distance(s->word, candidate);

	/* A word that shares no letter with the candidate is not a typing error. */
	if (d >= FAR || (size_t)d >= strlen(candidate) || (size_t)d >= strlen(s->word))
		return;
	if (s->best && d >= s->distance)
		return;
	s->best = candidate;
	s->distance = d;
}
