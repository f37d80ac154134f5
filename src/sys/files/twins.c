/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/twins.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

struct twin {
	dev_t dev;
	ino_t ino;
	uint64_t note;
	struct twin *next;
	char path[];
};

static size_t bucket_of(ino_t ino)
{
	return ((uint64_t)ino * 0x9e3779b97f4a7c15ull >> 40) % TWINS_BUCKETS;
}

const char *twins_find(const struct twins *t, dev_t dev, ino_t ino, uint64_t *ret_note)
{
	for (const struct twin *x = t->buckets[bucket_of(ino)]; x; x = x->next)
		if (x->ino == ino && x->dev == dev) {
			if (ret_note)
				*ret_note = x->note;
			return x->path;
		}
	return NULL;
}

int twins_add(struct twins *t, dev_t dev, ino_t ino, const char *dir, const char *name,
	      uint64_t note)
{
	struct twin **at = &t->buckets[bucket_of(ino)], *x;
	size_t n = strlen(dir) + strlen(name) + 1;

	if (t->n == LIMIT_TREE_LINKS)
		return -E2BIG;
	x = malloc(sizeof *x + n);
	if (!x)
		return -ENOMEM;
	x->dev = dev;
	x->ino = ino;
	x->note = note;
	x->next = *at;
	(void)snprintf(x->path, n, "%s%s", dir, name);
	*at = x;
	t->n++;
	return 0;
}

void twins_done(struct twins *t)
{
	for (int i = 0; i < TWINS_BUCKETS; i++)
		while (t->buckets[i]) {
			struct twin *x = t->buckets[i];

			t->buckets[i] = x->next;
			free(x);
		}
	t->n = 0;
}
