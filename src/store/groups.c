/* SPDX-License-Identifier: Apache-2.0 */
#include "store/groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "sys/cgroup/cgroup_find.h"

enum {
	DEPTH = 8, /* we use two levels */
	WAIT_MS = 200,
};

static int open_own(const char *controller)
{
	char path[LIMIT_PATH];
	int fd, r = cgroup_find("", controller, path, sizeof path);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -ENOENT : -errno;
	return fd;
}

int groups_open(void)
{
	return open_own(NULL);
}

static void group_name(char out[64], const char *id)
{
	(void)snprintf(out, 64, "cay-%s", id);
}

int groups_kill(int own, const char *id)
{
	auto_close int fd = FD_NONE;
	char name[64];
	int r;

	group_name(name, id);
	fd = openat(own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : io_write_file(fd, "cgroup.kill", "1");
	return r == -ENOENT ? 0 : r;
}

/* rmdir once the last process has ended; waits for processes that were already killed. */
static int remove_empty(int parent, const char *name, uint64_t deadline)
{
	struct timespec t = { .tv_nsec = (long)NS_PER_MS / 4 };

	while (unlinkat(parent, name, AT_REMOVEDIR) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_mono_ns() > deadline)
			return -errno;
		(void)nanosleep(&t, NULL);
		if (t.tv_nsec < 4 * (long)NS_PER_MS)
			t.tv_nsec *= 2;
	}
	return 0;
}

static int remove_group(int parent, const char *name, uint64_t deadline, int depth);

static int remove_below(int fd, uint64_t deadline, int depth)
{
	DIR *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	for (struct dirent *x = readdir(d); x && r == 0; x = readdir(d))
		if (x->d_type == DT_DIR && strcmp(x->d_name, ".") != 0 &&
		    strcmp(x->d_name, "..") != 0)
			r = remove_group(dirfd(d), x->d_name, deadline, depth);
	(void)closedir(d);
	return r;
}

static int remove_group(int parent, const char *name, uint64_t deadline, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (depth == DEPTH) {
		(void)close(fd);
		return -ELOOP;
	}
	r = remove_below(fd, deadline, depth + 1);
	return r < 0 ? r : remove_empty(parent, name, deadline);
}

/* The groups that hold limits. */
static int remove_v1(const char *name, uint64_t deadline)
{
	static const char *const controllers[] = { "memory", "pids", "cpu" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(controllers) && r == 0; i++) {
		auto_close int own = open_own(controllers[i]);

		if (own >= 0)
			r = remove_group(own, name, deadline, 0);
	}
	return r;
}

int groups_remove(int own, const char *id)
{
	uint64_t deadline = clock_mono_ns() + WAIT_MS * NS_PER_MS;
	char name[64];
	int r;

	group_name(name, id);
	/* A warden that ends normally removes this group last. */
	if (own >= 0 && faccessat(own, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	r = remove_v1(name, deadline);
	return r < 0 || own < 0 ? r : remove_group(own, name, deadline, 0);
}
