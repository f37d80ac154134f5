/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/normal.h"

#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/personality.h>
#include <sys/prctl.h>

#include "sys/ns/caps.h"
#include "t.h"

static bool may(int cap)
{
	return caps_now() & 1ull << cap;
}

/* Change everything that this process may change, and enter the normal form. */
static void enter_from_elsewhere(struct normal *ret)
{
	struct rlimit files = { 200, 300 }, size = { 1 << 20, RLIM_INFINITY };
	struct normal planned;

	CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(personality(ADDR_NO_RANDOMIZE) >= 0);
	CHECK(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0);
	CHECK(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) == 0);
	CHECK(setpriority(PRIO_PROCESS, 0, 19) == 0);
	CHECK(normal_plan(&planned) == 0 && normal_enter(&planned) == 0 && normal_plan(ret) == 0);
	CHECK(memcmp(&planned, ret, sizeof *ret) == 0);
	for (int i = 0; i < RLIMIT_NLIMITS; i++) {
		struct rlimit now;

		CHECK(getrlimit(i, &now) == 0 && memcmp(&now, &ret->limits[i], sizeof now) == 0);
	}
	CHECK(personality(0xffffffff) == PER_LINUX && sched_getscheduler(0) == SCHED_OTHER);
	CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 50000);
	CHECK(ret->limits[RLIMIT_FSIZE].rlim_cur == RLIM_INFINITY);
	CHECK(getpriority(PRIO_PROCESS, 0) == ret->nice);
}

static void a_privileged_process_gets_the_same_form_from_everywhere(void)
{
	struct normal first, after;

	if (!may(CAP_SYS_RESOURCE) || !may(CAP_SYS_NICE))
		t_skip("this process may not raise limits");
	CHECK(normal_plan(&first) == 0);
	enter_from_elsewhere(&after);
	CHECK(memcmp(&first, &after, sizeof first) == 0);
	CHECK(after.limits[RLIMIT_NOFILE].rlim_max > 300 && after.nice == 0);
}

static void each_privilege_counts_by_itself(void)
{
	struct normal n;

	if (!may(CAP_SYS_NICE))
		t_skip("this process may not raise its priority");
	CHECK(caps_set(1ull << CAP_SYS_NICE | 1ull << CAP_SETGID) == 0);
	enter_from_elsewhere(&n);
	CHECK(n.limits[RLIMIT_NOFILE].rlim_max == 300 && n.nice == 0);
}

static void a_user_keeps_what_it_may_not_raise(void)
{
	struct normal after;

	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(caps_set(0) == 0);
	enter_from_elsewhere(&after);
	CHECK(after.limits[RLIMIT_NOFILE].rlim_max == 300 &&
	      after.limits[RLIMIT_NOFILE].rlim_cur == 300 && after.nice == 19);
}

static void a_soft_limit_is_the_usual_one_whatever_it_was(void)
{
	struct normal n;
	struct rlimit l;

	CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0);
	if (l.rlim_max < 2048)
		t_skip("the hard limit of open files is lower than the usual soft limit");
	l.rlim_cur = 2048;
	CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
	CHECK(normal_plan(&n) == 0 && n.limits[RLIMIT_NOFILE].rlim_cur == 1024);
}

T_MAIN(T(a_privileged_process_gets_the_same_form_from_everywhere),
       T(each_privilege_counts_by_itself), T(a_user_keeps_what_it_may_not_raise),
       T(a_soft_limit_is_the_usual_one_whatever_it_was))
