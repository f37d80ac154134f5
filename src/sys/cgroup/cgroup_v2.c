/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in the v2 hierarchy: enable a controller, write a limit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/cgroup/cgroup_limit.h"
#include "sys/process/proc_text.h"

enum { FILE_MAX = 256 * 1024, PERIOD_US = 100000 };

/* True if a file of blank-separated words contains the word. */
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

/* True for us, our parent, and helpers that we started. */
static bool is_ours(pid_t pid)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char path[40], parent[24];

	if (pid == getpid() || pid == getppid())
		return true;
	if (pid <= 0) /* in another pid namespace */
		return false;
	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	/* A process that has ended is not in the way. */
	if (io_read_file(AT_FDCWD, path, &b) < 0)
		return true;
	return str_copy(parent, sizeof parent, proc_value(buf_str(&b), "PPid:")) &&
	       strtol(parent, NULL, 10) == getpid();
}

/* Call `with` for each process of the group; stop at the first failure. */
static int each_process(int own_fd, int (*with)(int own_fd, pid_t pid))
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char *save = NULL;
	int r = io_read_file(own_fd, "cgroup.procs", &b);

	if (r < 0 || !b.data)
		return r;
	for (char *at = strtok_r(b.data, "\n", &save); at && r == 0;
	     at = strtok_r(NULL, "\n", &save))
		r = with(own_fd, (pid_t)strtol(at, NULL, 10));
	return r;
}

static int refuse_others(int own_fd, pid_t pid)
{
	(void)own_fd;
	return is_ours(pid) ? 0 : -EBUSY;
}

static int move_aside(int own_fd, pid_t pid)
{
	char text[24];
	int r;

	(void)snprintf(text, sizeof text, "%d", (int)pid);
	r = io_write_file(own_fd, CGROUP_SELF "/cgroup.procs", text);
	return r == -ESRCH ? 0 : r;
}

/*
 * The kernel refuses the memory controller for a group with processes, but accepts pids and cpu as
 * threaded controllers, and then makes the group a threaded root. No group below it could then hold
 * a process, not even of other programs. Only the root group is exempt.
 */
static bool has_processes(int own_fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	if (faccessat(own_fd, "cgroup.type", F_OK, 0) < 0)
		return false;
	return io_read_file(own_fd, "cgroup.procs", &b) < 0 || b.len > 0;
}

static int step_aside(int own_fd)
{
	int r;

	if (!has_processes(own_fd))
		return 0;
	r = each_process(own_fd, refuse_others);
	if (r < 0)
		return r;
	if (mkdirat(own_fd, CGROUP_SELF, 0755) < 0 && errno != EEXIST)
		return -errno;
	return each_process(own_fd, move_aside);
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
	r = step_aside(own_fd);
	if (r == 0)
		r = io_write_file(own_fd, "cgroup.subtree_control", word);
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

	/* Without swap accounting the file is missing, and there is no swap to limit. */
	if (r == 0)
		r = io_write_file(fd, "memory.swap.max", "0");
	if (r == -ENOENT)
		r = 0;
	/* Kill one process, not all: then its shell can report it. */
	if (r == 0)
		(void)io_write_file(fd, "memory.oom.group", "0");
	return r;
}

static int write_cpu(int fd, uint64_t milli)
{
	char text[64];

	(void)snprintf(text, sizeof text, "%" PRIu64 " %d", milli * (PERIOD_US / 1000), PERIOD_US);
	return io_write_file(fd, "cpu.max", text);
}

int cgroup_v2_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY])
{
	static const struct cgroup_writer v2 = { write_memory, write_cpu };

	return cgroup_write_with(&v2, fd, c, value, why);
}
