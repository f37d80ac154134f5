/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

struct check *check_add(struct checks *l, const char *group, const char *name,
			enum check_state state, const char *fmt, ...)
{
	struct check *c = &l->items[l->n < CHECKS_MAX - 1 ? l->n++ : CHECKS_MAX - 1];
	va_list ap;

	*c = (struct check){ .group = group, .name = name, .state = state };
	va_start(ap, fmt);
	(void)vsnprintf(c->finding, sizeof c->finding, fmt, ap);
	va_end(ap);
	return c;
}

void check_fix(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->fix, sizeof c->fix, fmt, ap);
	va_end(ap);
}

const char *check_set(unsigned controllers, char out[64])
{
	size_t at = 0;

	out[0] = '\0';
	for (int i = 0; i < PROBE_CG_CONTROLLERS; i++)
		if (controllers >> i & 1)
			at += (size_t)snprintf(out + at, 64 - at, "%s%s", at ? ", " : "",
					       probe_cgroup_controller(i));
	return out;
}

void doctor_checks(const struct doctor_facts *f, struct checks *ret)
{
	ret->n = 0;
	checks_kernel(f, ret);
	checks_ns(f, ret);
	checks_cgroup(f, ret);
	checks_storage(f, ret);
	checks_vm(f, ret);
	checks_host(f, ret);
	checks_credentials(f, ret);
	checks_cay(f, ret);
}

bool doctor_runs(const struct checks *l)
{
	for (int i = 0; i < l->n; i++)
		if (l->items[i].blocks)
			return false;
	return true;
}
