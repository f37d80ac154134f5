/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "sys/cgroup/cgroup_find.h"

enum { FILE_MAX = 4096 };

const char *cgroup_controller_name(enum cgroup_controller c)
{
	static const char *const names[] = {
		[CGROUP_MEMORY] = "memory",
		[CGROUP_PIDS] = "pids",
		[CGROUP_CPU] = "cpu",
	};

	return names[c];
}

int cgroup_write_with(const struct cgroup_writer *w, int fd, enum cgroup_controller c,
		      uint64_t value, char why[CGROUP_WHY])
{
	char text[32];
	int r = -EINVAL;

	(void)snprintf(text, sizeof text, "%" PRIu64, value);
	switch (c) {
	case CGROUP_MEMORY:
		r = w->memory(fd, text);
		break;
	case CGROUP_PIDS:
		r = io_write_file(fd, "pids.max", text);
		break;
	case CGROUP_CPU:
		r = w->cpu(fd, value);
		break;
	case CGROUP_CONTROLLERS:
	default:
		break;
	}
	if (r < 0)
		(void)snprintf(why, CGROUP_WHY, "cannot write the limit: %s", strerror(-r));
	return r;
}

/* Make cay-ID in the v1 hierarchy of c. -ENOENT: c has none. */
static int v1_group(struct cgroup *g, enum cgroup_controller c, char why[CGROUP_WHY])
{
	char path[LIMIT_PATH];
	int r;

	if (g->v1_fd[c] >= 0)
		return 0;
	r = cgroup_find("", cgroup_controller_name(c), path, sizeof path);
	if (r < 0)
		return r;
	g->v1_parent_fd[c] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = g->v1_parent_fd[c] < 0 ? -errno : cgroup_make_dir(g->v1_parent_fd[c], g->name);
	if (r < 0) {
		fd_close(&g->v1_parent_fd[c]);
		(void)snprintf(why, CGROUP_WHY, "cannot make a control group in '%.120s': %s", path,
			       strerror(-r));
		return r == -ENOENT ? -EIO : r;
	}
	g->v1_fd[c] = r;
	return 0;
}

static int v2_ready(const struct cgroup *g, enum cgroup_controller c, char why[CGROUP_WHY])
{
	if (g->fd >= 0)
		return cgroup_v2_enable(g->parent_fd, c, why);
	(void)snprintf(why, CGROUP_WHY, "this user may not make control groups here");
	return -EACCES;
}

int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY])
{
	int r = v1_group(g, c, why);

	if (r == 0)
		return cgroup_v1_write(g->v1_fd[c], c, value, why);
	if (r != -ENOENT)
		return r;
	r = v2_ready(g, c, why);
	return r < 0 ? r : cgroup_v2_write(g->fd, c, value, why);
}

static int v1_limit_call(struct cgroup *g, const char *leaf, uint64_t bytes, int *ret_entry,
			 char why[CGROUP_WHY])
{
	auto_close int fd = cgroup_make_dir(g->v1_fd[CGROUP_MEMORY], leaf);
	int r = fd < 0 ? fd : cgroup_v1_write(fd, CGROUP_MEMORY, bytes, why);

	if (r < 0)
		return r;
	*ret_entry = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return *ret_entry < 0 ? -errno : 0;
}

/*
 * Move init out of cay-ID itself, so that its children can have a controller. Its cgroup namespace
 * keeps cay-ID as root, and it still starts calls below that. Done only if needed: the first move
 * into a group after a while takes 6 to 15 ms.
 */
static int move_init(const struct cgroup *g)
{
	char pid[24];

	if (g->init <= 0 || (mkdirat(g->fd, "init", 0755) < 0 && errno != EEXIST))
		return g->init <= 0 ? -EBUSY : -errno;
	(void)snprintf(pid, sizeof pid, "%d", (int)g->init);
	return io_write_file(g->fd, "init/cgroup.procs", pid);
}

static int v2_limit_call(struct cgroup *g, const char *leaf, uint64_t bytes, char why[CGROUP_WHY])
{
	auto_close int fd = FD_NONE;
	int r = v2_ready(g, CGROUP_MEMORY, why);

	if (r < 0)
		return r;
	r = cgroup_v2_enable(g->fd, CGROUP_MEMORY, why);
	if (r == -EBUSY && move_init(g) == 0)
		r = cgroup_v2_enable(g->fd, CGROUP_MEMORY, why);
	if (r < 0)
		return r;
	fd = openat(g->fd, leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : cgroup_v2_write(fd, CGROUP_MEMORY, bytes, why);
}

int cgroup_limit_call(struct cgroup *g, const char *leaf, uint64_t bytes, int *ret_entry,
		      char why[CGROUP_WHY])
{
	int r;

	*ret_entry = FD_NONE;
	why[0] = '\0';
	r = v1_group(g, CGROUP_MEMORY, why);
	r = r == 0	   ? v1_limit_call(g, leaf, bytes, ret_entry, why)
	    : r == -ENOENT ? v2_limit_call(g, leaf, bytes, why)
			   : r;
	if (r < 0 && !why[0])
		(void)snprintf(why, CGROUP_WHY, "cannot limit a call: %s", strerror(-r));
	return r;
}

int cgroup_entries(const struct cgroup *g, int ret[CGROUP_CONTROLLERS])
{
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		ret[c] = FD_NONE;
		if (g->v1_fd[c] < 0)
			continue;
		ret[c] = openat(g->v1_fd[c], "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (ret[c] < 0)
			return -errno;
	}
	return 0;
}

uint64_t cgroup_read_key(int fd, const char *file, const char *key)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	size_t n = strlen(key);
	char *save = NULL;

	if (io_read_file(fd, file, &b) < 0 || !b.data)
		return 0;
	for (char *at = strtok_r(b.data, "\n", &save); at; at = strtok_r(NULL, "\n", &save))
		if (strncmp(at, key, n) == 0 && at[n] == ' ')
			return strtoull(at + n + 1, NULL, 10);
	return 0;
}

static uint64_t read_number(int fd, const char *file)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	return io_read_file(fd, file, &b) == 0 && b.data ? strtoull(b.data, NULL, 10) : 0;
}

static int open_leaf(int fd, const char *leaf)
{
	return leaf && fd >= 0 ? openat(fd, leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : FD_NONE;
}

/* v1 counts a kill only in the victim's own group: add the sandbox's and the call's counts. */
static void count_v1(const struct cgroup *g, const char *leaf, struct cgroup_counts *ret)
{
	int fd = g->v1_fd[CGROUP_MEMORY];
	auto_close int call = open_leaf(fd, leaf);

	ret->oom_kills = cgroup_read_key(fd, "memory.oom_control", "oom_kill");
	if (call < 0)
		return;
	ret->oom_kills += cgroup_read_key(call, "memory.oom_control", "oom_kill");
	/* failcnt would tell, but newer kernels no longer count it (seen on 6.18). */
	ret->oom_call = read_number(call, "memory.max_usage_in_bytes") >=
			read_number(call, "memory.limit_in_bytes");
}

static void count_v2(const struct cgroup *g, const char *leaf, struct cgroup_counts *ret)
{
	auto_close int call = open_leaf(g->fd, leaf);

	if (call >= 0 && faccessat(call, "memory.events", R_OK, 0) == 0) {
		ret->oom_kills = cgroup_read_key(call, "memory.events", "oom_kill");
		ret->oom_call = cgroup_read_key(call, "memory.events", "oom");
	} else if (g->fd >= 0) {
		ret->oom_kills = cgroup_read_key(g->fd, "memory.events", "oom_kill");
	}
}

void cgroup_count(const struct cgroup *g, const char *leaf, struct cgroup_counts *ret)
{
	*ret = (struct cgroup_counts){ 0 };
	if (g->v1_fd[CGROUP_MEMORY] >= 0)
		count_v1(g, leaf, ret);
	else
		count_v2(g, leaf, ret);
	if (g->v1_fd[CGROUP_PIDS] >= 0)
		ret->pids_hits = cgroup_read_key(g->v1_fd[CGROUP_PIDS], "pids.events", "max");
	else if (g->fd >= 0)
		ret->pids_hits = cgroup_read_key(g->fd, "pids.events", "max");
}

int cgroup_cpu(const struct cgroup *g, const char *leaf, uint64_t *ret_us)
{
	static const char key[] = "usage_usec ";
	char path[64], text[256];
	auto_close int fd = FD_NONE;
	const char *at;
	ssize_t n;

	(void)snprintf(path, sizeof path, "%s/cpu.stat", leaf);
	fd = g->fd < 0 ? FD_NONE : openat(g->fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return -ENOENT;
	text[n] = '\0';
	at = strstr(text, key);
	if (!at)
		return -ENOENT;
	*ret_us = strtoull(at + sizeof key - 1, NULL, 10);
	return 0;
}
