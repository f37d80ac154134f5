/* SPDX-License-Identifier: Apache-2.0 */
#include "api/limits.h"

#include <stdio.h>
#include <string.h>

#include "store/keys.h"

static void fill(uint64_t *value, uint64_t limit)
{
	if (!*value && limit != KEY_LIMIT_NONE)
		*value = limit;
}

int api_limits(struct job_run *r, const char *owner, struct limits_spec *l, struct err *e)
{
	struct key_limits k;
	struct key_use more;

	if (cay_catalog(r->cay, e) < 0 || catalog_owner_limits(r->cay->catalog, owner, &k, e) < 0)
		return -1;
	fill(&l->memory, k.of[KEY_BOX_MEMORY]);
	fill(&l->cpu_milli, k.of[KEY_BOX_CPU_MILLI]);
	fill(&l->pids, k.of[KEY_BOX_PIDS]);
	fill(&l->disk, k.of[KEY_BOX_DISK]);
	/* A host without cgroups serves too; docs/server.md says what holds there. */
	l->best_effort = true;
	more = (struct key_use){ .sandboxes = 1,
				 .memory = l->memory,
				 .cpu_milli = l->cpu_milli,
				 .pids = l->pids,
				 .disk = l->disk };
	/* Refused here, it costs no sandbox of a pool and no warden. */
	return owner ? catalog_admit(r->cay->catalog, owner, &more, e) : 0;
}

void api_limits_warn(const struct warnings *w)
{
	static bool said;

	for (int i = 0; i < w->n && !said; i++)
		if (strcmp(w->v[i].code, "limit.not_enforced") == 0)
			fprintf(stderr, "cay serve: sandboxes run without a limit: %s\n",
				w->v[i].text);
	said |= w->n > 0;
}
