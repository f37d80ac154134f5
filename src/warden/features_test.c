/* SPDX-License-Identifier: Apache-2.0 */
/* A request that needs a feature which the driver lacks is refused, and the error names it. */
#include "warden/features.h"

#include <string.h>

#include "t.h"

static struct driver driver = { .name = "poor" };
static struct warden w = { .driver = &driver };

static void ask_for_everything(void)
{
	w.spec.network = true;
	w.spec.limits = (struct cell_limits){ .memory = 1, .pids = 1, .cpu_milli = 1 };
	w.ready_dir = "ready";
	w.trace_level = TRACE_FULL;
}

static void a_build_needs_each_of_its_features(void)
{
	static const struct {
		unsigned feature;
		const char *name;
	} rows[] = {
		{ HAS_NETWORK, "driver 'poor' has no network" },
		{ HAS_CLAIM, "driver 'poor' has no pools of ready sandboxes" },
		{ HAS_EXEC_EVENTS, "driver 'poor' has no trace of processes" },
		{ HAS_UPPER, "driver 'poor' has no list of changed files" },
		{ HAS_MEMORY, "driver 'poor' has no memory limit" },
		{ HAS_CPU, "driver 'poor' has no CPU limit" },
		{ HAS_PIDS, "driver 'poor' has no limit on processes" },
	};

	ask_for_everything();
	driver.has = ~0u;
	CHECK(features_check_build(&w, &(struct err){ 0 }) == 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = { 0 };

		driver.has = ~rows[i].feature;
		CHECK(features_check_build(&w, &e) < 0 && e.kind == ERR_UNAVAILABLE);
		CHECK_STR(e.msg, rows[i].name);
	}
}

static void a_limit_of_best_effort_is_left_to_the_driver(void)
{
	ask_for_everything();
	driver.has = ~(unsigned)(HAS_MEMORY | HAS_CPU | HAS_PIDS);
	w.spec.limits.best_effort = true;
	CHECK(features_check_build(&w, &(struct err){ 0 }) == 0);
}

static void a_feature_that_nobody_asks_for_may_be_missing(void)
{
	w.spec.network = false;
	w.spec.limits = (struct cell_limits){ 0 };
	w.ready_dir = NULL;
	w.trace_level = TRACE_CALLS;
	driver.has = 0;
	CHECK(features_check_build(&w, &(struct err){ 0 }) == 0);
}

static void every_feature_has_a_name(void)
{
	driver.has = 0;
	for (unsigned bit = HAS_FDS; bit <= HAS_SPARE; bit <<= 1) {
		struct err e = { 0 };

		CHECK(features_need(&w, bit, &e) < 0 && strstr(e.msg, "driver 'poor' has no "));
	}
}

static void the_drivers_of_this_build_are_found_by_name(void)
{
	CHECK(driver_find("ns") && strcmp(driver_find("ns")->name, "ns") == 0);
	CHECK(!driver_find("nothing"));
}

T_MAIN(T(a_build_needs_each_of_its_features), T(a_limit_of_best_effort_is_left_to_the_driver),
       T(a_feature_that_nobody_asks_for_may_be_missing), T(every_feature_has_a_name),
       T(the_drivers_of_this_build_are_found_by_name))
