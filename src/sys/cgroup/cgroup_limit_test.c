/* SPDX-License-Identifier: Apache-2.0 */
/* On a directory of plain files that stand for a group's files. */
#include "sys/cgroup/cgroup_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char dir[32], why[CGROUP_WHY];
static int fd;

static void begin(void)
{
	(void)snprintf(dir, sizeof dir, "/tmp/cgroup-limit-XXXXXX");
	CHECK(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	why[0] = '\0';
}

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, dir) == 0);
}

static void put(const char *name, const char *text)
{
	int f = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(f >= 0 && write(f, text, strlen(text)) == (ssize_t)strlen(text) && close(f) == 0);
}

static void holds(const char *name, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	CHECK(io_read_file(fd, name, &b) == 0);
	CHECK_STR(b.data ? b.data : "", want);
}

static void v2_memory_limit_disables_swap_and_group_kill(void)
{
	begin();
	put("memory.max", "");
	put("memory.swap.max", "");
	put("memory.oom.group", "");
	CHECK(cgroup_v2_write(fd, CGROUP_MEMORY, 64 << 20, why) == 0);
	holds("memory.max", "67108864");
	holds("memory.swap.max", "0");
	holds("memory.oom.group", "0");
	end();
}

static void v2_works_without_swap_accounting(void)
{
	begin();
	put("memory.max", "");
	CHECK(cgroup_v2_write(fd, CGROUP_MEMORY, 1, why) == 0);
	end();
}

static void v2_pids_and_cpu_have_their_formats(void)
{
	begin();
	put("pids.max", "");
	put("cpu.max", "");
	CHECK(cgroup_v2_write(fd, CGROUP_PIDS, 99, why) == 0);
	holds("pids.max", "99");
	CHECK(cgroup_v2_write(fd, CGROUP_CPU, 1500, why) == 0);
	holds("cpu.max", "150000 100000");
	end();
}

static void no_controller_is_enabled_beside_foreign_processes(void)
{
	begin();
	put("cgroup.type", "domain\n");
	put("cgroup.controllers", "cpu memory pids\n");
	put("cgroup.subtree_control", "");
	put("cgroup.procs", "1\n");
	/* The kernel would accept it and make every group below invalid. */
	CHECK(cgroup_v2_enable(fd, CGROUP_PIDS, why) == -EBUSY);
	CHECK(strstr(why, "other processes share the control group"));
	holds("cgroup.subtree_control", "");
	put("cgroup.procs", "");
	CHECK(cgroup_v2_enable(fd, CGROUP_PIDS, why) == 0);
	holds("cgroup.subtree_control", "+pids");
	end();
}

static void v1_memory_and_swap_have_one_limit(void)
{
	begin();
	put("memory.limit_in_bytes", "");
	put("memory.memsw.limit_in_bytes", "");
	CHECK(cgroup_v1_write(fd, CGROUP_MEMORY, 4096, why) == 0);
	holds("memory.limit_in_bytes", "4096");
	holds("memory.memsw.limit_in_bytes", "4096");
	end();
}

static void v1_socket_buffers_get_the_limit_too(void)
{
	begin();
	put("memory.limit_in_bytes", "");
	put("memory.kmem.tcp.limit_in_bytes", "");
	CHECK(cgroup_v1_write(fd, CGROUP_MEMORY, 4096, why) == 0);
	holds("memory.kmem.tcp.limit_in_bytes", "4096");
	end();
}

static void v1_without_swap_accounting_does_not_swap(void)
{
	begin();
	put("memory.limit_in_bytes", "");
	put("memory.swappiness", "");
	CHECK(cgroup_v1_write(fd, CGROUP_MEMORY, 4096, why) == 0);
	holds("memory.swappiness", "0");
	end();
}

static void v1_cpu_is_a_quota_of_a_period(void)
{
	begin();
	put("cpu.cfs_period_us", "");
	put("cpu.cfs_quota_us", "");
	CHECK(cgroup_v1_write(fd, CGROUP_CPU, 200, why) == 0);
	holds("cpu.cfs_period_us", "100000");
	holds("cpu.cfs_quota_us", "20000");
	end();
}

static void a_failed_write_of_a_limit_gives_the_reason(void)
{
	begin();
	CHECK(cgroup_v1_write(fd, CGROUP_PIDS, 1, why) == -ENOENT);
	CHECK(strstr(why, "cannot write the limit"));
	end();
}

static void an_enabled_controller_is_left_alone(void)
{
	begin();
	put("cgroup.subtree_control", "cpu memory\n");
	CHECK(cgroup_v2_enable(fd, CGROUP_MEMORY, why) == 0);
	holds("cgroup.subtree_control", "cpu memory\n");
	end();
}

static void an_available_controller_is_enabled(void)
{
	begin();
	put("cgroup.subtree_control", "");
	put("cgroup.controllers", "cpu memory pids\n");
	CHECK(cgroup_v2_enable(fd, CGROUP_PIDS, why) == 0);
	holds("cgroup.subtree_control", "+pids");
	end();
}

static void a_missing_controller_is_named(void)
{
	begin();
	put("cgroup.subtree_control", "");
	put("cgroup.controllers", "cpuset pids\n");
	CHECK(cgroup_v2_enable(fd, CGROUP_CPU, why) == -ENOENT);
	CHECK(strstr(why, "no 'cpu' controller"));
	end();
}

static void counters_are_found_by_their_whole_key(void)
{
	begin();
	put("memory.events", "low 1\noom 2\noom_kill 3\noom_group_kill 4\n");
	CHECK(cgroup_read_key(fd, "memory.events", "oom") == 2);
	CHECK(cgroup_read_key(fd, "memory.events", "oom_kill") == 3);
	CHECK(cgroup_read_key(fd, "memory.events", "max") == 0);
	CHECK(cgroup_read_key(fd, "absent", "max") == 0);
	end();
}

static struct cgroup group(void)
{
	struct cgroup g = cgroup_none;

	CHECK(mkdirat(fd, "call-1", 0755) == 0);
	return g;
}

static void a_v2_call_has_its_own_count_of_kills(void)
{
	struct cgroup_counts n;
	struct cgroup g;

	begin();
	g = group();
	g.fd = fd;
	put("memory.events", "oom 5\noom_kill 7\n");
	put("pids.events", "max 3\n");
	cgroup_count(&g, "call-1", &n);
	CHECK(n.oom_kills == 7 && n.oom_call == 0 && n.pids_hits == 3);
	put("call-1/memory.events", "oom 1\noom_kill 2\n");
	cgroup_count(&g, "call-1", &n);
	CHECK(n.oom_kills == 2 && n.oom_call == 1);
	end();
}

static void v1_counts_of_sandbox_and_call_add_up(void)
{
	struct cgroup_counts n;
	struct cgroup g;

	begin();
	g = group();
	g.v1_fd[CGROUP_MEMORY] = fd;
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	put("call-1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	put("call-1/memory.limit_in_bytes", "4096\n");
	put("call-1/memory.max_usage_in_bytes", "4095\n");
	cgroup_count(&g, "call-1", &n);
	CHECK(n.oom_kills == 6 && n.oom_call == 0);
	put("call-1/memory.max_usage_in_bytes", "4096\n");
	cgroup_count(&g, "call-1", &n);
	CHECK(n.oom_kills == 6 && n.oom_call == 1 && n.pids_hits == 0);
	cgroup_count(&g, NULL, &n);
	CHECK(n.oom_kills == 4 && n.oom_call == 0);
	end();
}

static void the_processor_time_of_a_call_is_read(void)
{
	struct cgroup g;
	uint64_t us = 0;

	begin();
	g = group();
	CHECK(cgroup_cpu(&g, "call-1", &us) == -ENOENT);
	g.fd = fd;
	CHECK(cgroup_cpu(&g, "call-1", &us) == -ENOENT);
	put("call-1/cpu.stat", "nothing 1\n");
	CHECK(cgroup_cpu(&g, "call-1", &us) == -ENOENT);
	put("call-1/cpu.stat", "usage_usec 12345\nuser_usec 1\nsystem_usec 2\n");
	CHECK(cgroup_cpu(&g, "call-1", &us) == 0 && us == 12345);
	end();
}

T_MAIN(T(the_processor_time_of_a_call_is_read), T(v2_memory_limit_disables_swap_and_group_kill),
       T(v2_works_without_swap_accounting), T(v2_pids_and_cpu_have_their_formats),
       T(no_controller_is_enabled_beside_foreign_processes), T(v1_memory_and_swap_have_one_limit),
       T(v1_without_swap_accounting_does_not_swap), T(v1_socket_buffers_get_the_limit_too),
       T(v1_cpu_is_a_quota_of_a_period), T(a_failed_write_of_a_limit_gives_the_reason),
       T(an_enabled_controller_is_left_alone), T(an_available_controller_is_enabled),
       T(a_missing_controller_is_named), T(counters_are_found_by_their_whole_key),
       T(a_v2_call_has_its_own_count_of_kills), T(v1_counts_of_sandbox_and_call_add_up))
