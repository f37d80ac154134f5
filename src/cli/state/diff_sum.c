/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/diff_sum.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

static int add(struct diff_totals *t, const char *dest, const struct diff *d, struct err *e)
{
	for (size_t i = 0; i < d->n; i++) {
		struct patch_counts n;

		if (diff_is_identity(dest, &d->v[i]))
			continue;
		if (patch_count(d, &d->v[i], &n, e) < 0)
			return -1;
		diff_add_totals(t, &n);
	}
	return 0;
}

int diff_sum(const struct diff_view *old, const struct diff_view *new, struct diff_totals *ret,
	     struct err *e)
{
	auto_free const char **skip = calloc((size_t) new->n + 1, sizeof *skip);

	*ret = (struct diff_totals){ 0 };
	if (!skip)
		return err_sys(e, ENOMEM, "compare");
	for (int i = 0; i < new->n; i++) {
		const char *dest = new->mounts[i].dest;
		const struct diff_mount *was = diff_view_at(old, dest);
		size_t n = strcmp(dest, "/") == 0 ? 0 : strlen(dest);
		auto_done(diff_done) struct diff d = { 0 };
		struct diff_scope scope = { .skip = skip };

		for (int k = 0; k < new->n; k++)
			if (k != i && strncmp(new->mounts[k].dest, dest, n) == 0 &&
			    new->mounts[k].dest[n] == '/')
				skip[scope.nskip++] = new->mounts[k].dest + n + 1;
		if (!was)
			continue;
		if (diff_compare(&was->now, &new->mounts[i].now, &scope, &d, e) < 0 ||
		    add(ret, dest, &d, e) < 0)
			return -1;
	}
	return 0;
}
