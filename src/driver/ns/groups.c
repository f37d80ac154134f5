/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of calls, and the freezer: the cell's control groups by name. */
#include <errno.h>
#include <stdio.h>

#include "base/io.h"
#include "driver/ns/ns.h"
#include "sys/cgroup/cgroup_limit.h"

_Static_assert((int)CELL_WHY == (int)CGROUP_WHY, "reasons are passed on as they are");

int ns_group_open(struct cell *c, const char *name, int *ret_fd)
{
	int fd = cgroup_leaf(&ns_cell(c)->cgroup, name);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int ns_group_limit(struct cell *c, const char *name, uint64_t bytes, int *ret_entry,
		   char why[CELL_WHY])
{
	return cgroup_limit_call(&ns_cell(c)->cgroup, name, bytes, ret_entry, why);
}

int ns_group_kill(struct cell *c, const char *name)
{
	return cgroup_kill_leaf(&ns_cell(c)->cgroup, name);
}

void ns_group_count(struct cell *c, const char *name, struct group_counts *ret)
{
	struct cgroup_counts n;

	cgroup_count(&ns_cell(c)->cgroup, name, &n);
	*ret = (struct group_counts){ n.oom_kills, n.oom_call, n.pids_hits };
}

int ns_group_cpu(struct cell *c, const char *name, uint64_t *ret_us)
{
	return cgroup_cpu(&ns_cell(c)->cgroup, name, ret_us);
}

int ns_group_pids(struct cell *c, const char *name, long *pids, int most)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64 * 1024);
	char path[64];
	int n = 0, used;

	(void)snprintf(path, sizeof path, "%s/cgroup.procs", name);
	if (io_read_file(ns_cell(c)->cgroup.fd, path, &b) < 0 || !b.len)
		return 0;
	for (char *at = b.data; n < most && sscanf(at, "%ld%n", &pids[n], &used) == 1; at += used)
		n++;
	return n;
}

int ns_group_remove(struct cell *c, const char *name)
{
	return cgroup_remove_leaf(&ns_cell(c)->cgroup, name);
}

int ns_freeze(struct cell *c, bool on, int wait_ms)
{
	return cgroup_freeze(&ns_cell(c)->cgroup, on, wait_ms);
}
