/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_idle.h"

#include <string.h>

/* Begin a new idle time. The last one stays if it is long enough to be of use. */
static void begin_idle(struct changes_idles *x, uint64_t now_ns)
{
	struct changes_idle *last = x->n ? &x->v[x->n - 1] : NULL;

	if (last && last->to_ns < last->from_ns + CHANGES_LATE_NS)
		x->n--;
	if (x->n == CHANGES_IDLES) {
		memmove(&x->v[0], &x->v[1], (CHANGES_IDLES - 1) * sizeof x->v[0]);
		x->n--;
	}
	x->v[x->n++] = (struct changes_idle){ now_ns, now_ns };
}

void changes_idle_sample(struct changes_idles *x, uint64_t before_ns, uint64_t after_ns,
			 uint64_t cpu_us, bool usable)
{
	struct changes_idle *last = x->n ? &x->v[x->n - 1] : NULL;

	if (last && x->sampled && usable && cpu_us == x->cpu_us) {
		if (before_ns > last->to_ns)
			last->to_ns = before_ns;
	} else {
		begin_idle(x, after_ns);
	}
	x->sampled = true;
	x->cpu_us = cpu_us;
}

bool changes_idle_covers(const struct changes_idles *x, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->v[i].from_ns <= from_ns && x->v[i].to_ns >= to_ns + CHANGES_LATE_NS)
			return true;
	return false;
}
