/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in the unified hierarchy: enabling a controller, writing a limit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "sys/cgroup_find.h"
#include "sys/cgroup_limit.h"

enum { FILE_MAX = 256 * 1024, PERIOD_US = 100000 };

/* Is the word in a file of words separated by blanks? */
static bool file_lists(int fd, const char *file, const char *word)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char *save = NULL;

	if (io_read_file(fd, file, &b) < 0 || !b.data)
		return false;
	for (char *at = strtok_r(b.data, " \n", &save); at; at = strtok_r(NULL, " \n", &save))
		if (strcmp(at, word) == 0)
			return true;
	return false;
}

/* True where nobody is in the group but us and whoever started us. */
static bool only_we(int own_fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char *save = NULL;

	if (io_read_file(own_fd, "cgroup.procs", &b) < 0 || !b.data)
		return false;
	for (char *at = strtok_r(b.data, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
		long pid = strtol(at, NULL, 10);

		if (pid != getpid() && pid != getppid())
			return false;
	}
	return true;
}

static int step_aside(int own_fd)
{
	const pid_t we[] = { getppid(), getpid() };
	char pid[24];
	int r = 0;

	if (!only_we(own_fd))
		return -EBUSY;
	if (mkdirat(own_fd, CGROUP_SELF, 0755) < 0 && errno != EEXIST)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(we) && r == 0; i++) {
		(void)snprintf(pid, sizeof pid, "%d", (int)we[i]);
		r = io_write_file(own_fd, CGROUP_SELF "/cgroup.procs", pid);
	}
	return r;
}

int cgroup_v2_enable(int own_fd, enum cgroup_controller c, char why[CGROUP_WHY])
{
	const char *name = cgroup_controller_name(c);
	char word[16];
	int r;

	if (file_lists(own_fd, "cgroup.subtree_control", name))
		return 0;
	if (!file_lists(own_fd, "cgroup.controllers", name)) {
		(void)snprintf(why, CGROUP_WHY,
			       "the control group of this process has no '%s' controller", name);
		return -ENOENT;
	}
	(void)snprintf(word, sizeof word, "+%s", name);
	r = io_write_file(own_fd, "cgroup.subtree_control", word);
	if (r == -EBUSY) {
		r = step_aside(own_fd);
		if (r == 0)
			r = io_write_file(own_fd, "cgroup.subtree_control", word);
	}
	if (r == -EBUSY)
		(void)snprintf(why, CGROUP_WHY,
			       "other processes share the control group of this one, so it can "
			       "have no '%s' controller for its children (systemd-run --scope -p "
			       "Delegate=yes cay ... gives it one)",
			       name);
	else if (r < 0)
		(void)snprintf(why, CGROUP_WHY, "cannot enable the '%s' controller: %s", name,
			       strerror(-r));
	return r;
}

static int write_memory(int fd, const char *text)
{
	int r = io_write_file(fd, "memory.max", text);

	/* Without accounting of swap the file is missing, and then there is none to limit. */
	if (r == 0)
		r = io_write_file(fd, "memory.swap.max", "0");
	if (r == -ENOENT)
		r = 0;
	/* One process is killed, not all: the shell that started it can say so. */
	if (r == 0)
		(void)io_write_file(fd, "memory.oom.group", "0");
	return r;
}

int cgroup_v2_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY])
{
	char text[64];
	int r = -EINVAL;

	(void)snprintf(text, sizeof text, "%" PRIu64, value);
	switch (c) {
	case CGROUP_MEMORY:
		r = write_memory(fd, text);
		break;
	case CGROUP_PIDS:
		r = io_write_file(fd, "pids.max", text);
		break;
	case CGROUP_CPU:
		(void)snprintf(text, sizeof text, "%" PRIu64 " %d", value * (PERIOD_US / 1000),
			       PERIOD_US);
		r = io_write_file(fd, "cpu.max", text);
		break;
	case CGROUP_CONTROLLERS:
	default:
		break;
	}
	if (r < 0)
		(void)snprintf(why, CGROUP_WHY, "cannot write the limit: %s", strerror(-r));
	return r;
}
