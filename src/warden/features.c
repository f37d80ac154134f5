/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/features.h"

static const struct {
	unsigned feature;
	const char *name;
} names[] = {
	{ HAS_FDS, "passing of descriptors" },
	{ HAS_RENEW, "snapshots and rollbacks" },
	{ HAS_UPPER, "list of changed files" },
	{ HAS_EXEC_EVENTS, "trace of processes" },
	{ HAS_NETWORK, "network" },
	{ HAS_FREEZE, "freezing of processes" },
	{ HAS_TERMINAL, "terminals" },
	{ HAS_PORTS, "connections to ports inside" },
	{ HAS_CLAIM, "pools of ready sandboxes" },
	{ HAS_VERIFY, "verification from outside" },
	{ HAS_GROUPS, "groups of calls" },
	{ HAS_MEMORY, "memory limit" },
	{ HAS_CPU, "CPU limit" },
	{ HAS_PIDS, "limit on processes" },
	{ HAS_SPARE, "child made ahead of its command" },
};

int features_need(const struct warden *w, unsigned feature, struct err *e)
{
	if ((features_of(w->driver->has) & feature) == feature)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].feature == feature)
			return err_set(e, ERR_UNAVAILABLE, "driver '%s' has no %s", w->driver->name,
				       names[i].name);
	return err_set(e, ERR_UNAVAILABLE, "driver '%s' lacks a feature", w->driver->name);
}

int features_check_build(const struct warden *w, struct err *e)
{
	const struct cell_limits *l = &w->spec.limits;
	bool strict = !l->best_effort;
	const struct {
		bool wanted;
		unsigned feature;
	} needs[] = {
		{ w->spec.network, HAS_NETWORK },
		{ w->ready_dir != NULL, HAS_CLAIM },
		{ w->trace_level == TRACE_FULL, HAS_EXEC_EVENTS },
		{ w->trace_level == TRACE_FULL, HAS_UPPER },
		{ l->memory && strict, HAS_MEMORY },
		{ l->cpu_milli && strict, HAS_CPU },
		{ l->pids && strict, HAS_PIDS },
	};

	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		if (needs[i].wanted && features_need(w, needs[i].feature, e) < 0)
			return -1;
	return 0;
}
