/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_table.h"

#include "t.h"

enum { MANY = 3000 };

static struct proc procs[MANY];

static void fill(struct proc_table *t, int n)
{
	for (int i = 0; i < n; i++) {
		procs[i] = (struct proc){ .pid = 10 + i * 7,
					  .inside = 2 + i,
					  .exec_event = (uint64_t)i + 1 };
		CHECK(proc_table_add(t, &procs[i]) == 0);
	}
}

static void all_are_found_by_both_pids_as_the_table_grows_and_shrinks(void)
{
	struct proc_table t = { .max = MANY };

	fill(&t, MANY);
	for (int i = 0; i < MANY; i++) {
		for (int j = i; j < MANY; j += 1 + MANY / 10) {
			CHECK(proc_table_find(&t, 10 + j * 7) == &procs[j]);
			CHECK(proc_table_find_inside(&t, 2 + j) == &procs[j]);
		}
		proc_table_del(&t, &procs[i]);
		CHECK(!proc_table_find(&t, 10 + i * 7) && !proc_table_find_inside(&t, 2 + i));
		CHECK(t.size <= 16 || t.size <= 8 * t.count * 2);
	}
	CHECK(t.size == 0 && !t.outside && !t.inside);
}

static void nothing_is_held_beyond_the_limit(void)
{
	struct proc_table t = { .max = 20 };
	struct proc more = { .pid = 1, .inside = 1 };

	fill(&t, 20);
	CHECK(proc_table_add(&t, &more) == -ENOSPC && !proc_table_find(&t, 1));
	proc_table_del(&t, &procs[3]);
	CHECK(proc_table_add(&t, &more) == 0 && proc_table_find(&t, 1) == &more);
	proc_table_del(&t, &more);
	for (int i = 0; i < 20; i++)
		if (i != 3)
			proc_table_del(&t, &procs[i]);
}

static void a_status_goes_to_the_older_of_two_with_one_pid(void)
{
	struct proc_table t = { .max = 4 };
	struct proc old = { .pid = 5, .inside = 3, .exec_event = 1 };
	struct proc new = { .pid = 6, .inside = 3, .exec_event = 9 };

	CHECK(proc_table_add(&t, &new) == 0 && proc_table_add(&t, &old) == 0);
	CHECK(proc_table_find_inside(&t, 3) == &old);
	old.has_status = true;
	CHECK(proc_table_find_inside(&t, 3) == &new);
	proc_table_del(&t, &old);
	proc_table_del(&t, &new);
}

static void a_parked_process_gives_its_outer_pid_free(void)
{
	struct proc_table t = { .max = 4 };
	struct proc gone = { .pid = 5, .inside = 3, .parked_ns = 1 }, p = { .pid = 5, .inside = 4 };

	CHECK(proc_table_add(&t, &p) == 0 && proc_table_add(&t, &gone) == 0);
	CHECK(proc_table_find(&t, 5) == &p && proc_table_find_inside(&t, 3) == &gone);
	proc_table_del(&t, &gone);
	proc_table_del(&t, &p);
}

T_MAIN(T(all_are_found_by_both_pids_as_the_table_grows_and_shrinks),
       T(nothing_is_held_beyond_the_limit), T(a_status_goes_to_the_older_of_two_with_one_pid),
       T(a_parked_process_gives_its_outer_pid_free))
