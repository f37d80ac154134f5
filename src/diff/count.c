/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/count.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

bool diff_is_identity(const char *dest, const struct diff_entry *en)
{
	static const char *const paths[] = { "etc/hosts", "etc/hostname", "etc/machine-id" };

	if (strcmp(dest, "/") != 0 || !S_ISREG(en->new.mode) || en->new.size > 512)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (strcmp(en->path, paths[i]) == 0)
			return true;
	return false;
}

static uint64_t size_change(const struct diff_entry *en)
{
	uint64_t a = S_ISREG(en->old.mode) ? en->old.size : 0;
	uint64_t b = S_ISREG(en->new.mode) ? en->new.size : 0;

	return a > b ? a - b : b - a;
}

void diff_add_totals(struct diff_totals *t, const struct diff_entry *en,
		     const struct patch_counts *n)
{
	t->files++;
	t->added += n->added;
	t->removed += n->removed;
	t->binary += n->binary;
	t->bytes += size_change(en);
	t->omitted += n->omitted;
	t->host_changed += n->host_changed;
}

int diff_add_all(struct diff_totals *t, const char *dest, const struct diff *d, struct err *e)
{
	for (size_t i = 0; i < d->n; i++) {
		struct patch_counts n;

		if (diff_is_identity(dest, &d->v[i]))
			continue;
		if (patch_count(d, &d->v[i], &n, e) < 0)
			return -1;
		diff_add_totals(t, &d->v[i], &n);
	}
	return 0;
}
