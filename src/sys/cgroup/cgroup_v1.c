/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in v1 hierarchies, one per controller. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "sys/cgroup/cgroup_limit.h"

enum { PERIOD_US = 100000 };

static int write_memory(int fd, const char *text)
{
	int r = io_write_file(fd, "memory.limit_in_bytes", text);

	if (r < 0)
		return r;
	/* TCP and UDP buffers have their own counter, which is unlimited by default. */
	r = io_write_file(fd, "memory.kmem.tcp.limit_in_bytes", text);
	if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	/* Limit memory plus swap, so that swapped memory still counts. */
	r = io_write_file(fd, "memory.memsw.limit_in_bytes", text);
	if (r == -ENOENT || r == -EOPNOTSUPP) {
		(void)io_write_file(fd, "memory.swappiness", "0");
		r = 0;
	}
	return r;
}

static int write_cpu(int fd, uint64_t milli)
{
	char text[32];
	int r;

	(void)snprintf(text, sizeof text, "%d", PERIOD_US);
	r = io_write_file(fd, "cpu.cfs_period_us", text);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof text, "%" PRIu64, milli * (PERIOD_US / 1000));
	return io_write_file(fd, "cpu.cfs_quota_us", text);
}

int cgroup_v1_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY])
{
	static const struct cgroup_writer v1 = { write_memory, write_cpu };

	return cgroup_write_with(&v1, fd, c, value, why);
}
