/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup_join.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/cgroup/cgroup_find.h"

static int enter_leaf(const char *path)
{
	auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : io_write_file(fd, CGROUP_SELF "/cgroup.procs", "0");
}

int cgroup_settle(char *ret_path, size_t size)
{
	auto_close int fd = FD_NONE;
	int r = cgroup_find("", NULL, ret_path, size);

	if (r < 0)
		return r;
	fd = open(ret_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (mkdirat(fd, CGROUP_SELF, 0755) < 0 && errno != EEXIST))
		return -errno;
	return enter_leaf(ret_path);
}

int cgroup_join(const char *path)
{
	return enter_leaf(path);
}
