/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "sys/cgroup/cgroup_find.h"

const struct cgroup cgroup_none = {
	.fd = FD_NONE,
	.parent_fd = FD_NONE,
	.v1_fd = { FD_NONE, FD_NONE, FD_NONE },
	.v1_parent_fd = { FD_NONE, FD_NONE, FD_NONE },
};

static int open_own(void)
{
	char path[LIMIT_PATH];
	int fd, r = cgroup_find("", NULL, path, sizeof path);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int found_own = FD_NONE;

void cgroup_look_ahead(void)
{
	fd_close(&found_own);
	found_own = open_own();
}

int cgroup_make_dir(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cgroup_new(struct cgroup *g, const char *id)
{
	int r;

	*g = cgroup_none;
	(void)snprintf(g->name, sizeof g->name, "cay-%s", id);
	r = found_own >= 0 ? TAKE_FD(found_own) : open_own();
	if (r < 0)
		return r;
	g->parent_fd = r;
	r = cgroup_make_dir(g->parent_fd, g->name);
	if (r < 0) {
		cgroup_done(g);
		return r;
	}
	g->fd = r;
	return 0;
}

static int give_procs(const struct cgroup *g, int dirfd)
{
	if (!g->chown)
		return 0;
	return fchownat(dirfd, "cgroup.procs", g->owner, g->owner_gid, 0) < 0 ? -errno : 0;
}

int cgroup_delegate(struct cgroup *g, uid_t uid, gid_t gid)
{
	g->owner = uid;
	g->owner_gid = gid;
	g->chown = true;
	return g->fd < 0 ? 0 : give_procs(g, g->fd);
}

int cgroup_leaf(struct cgroup *g, const char *leaf)
{
	auto_close int fd = FD_NONE;
	int r;

	if (g->fd < 0)
		return -ENOENT;
	fd = cgroup_make_dir(g->fd, leaf);
	if (fd < 0)
		return fd;
	r = give_procs(g, fd);
	return r < 0 ? r : TAKE_FD(fd);
}

static int kill_below(int dirfd, const char *leaf)
{
	char path[64];

	(void)snprintf(path, sizeof path, "%s/cgroup.kill", leaf);
	return io_write_file(dirfd, path, "1");
}

int cgroup_kill_leaf(struct cgroup *g, const char *leaf)
{
	return g->fd < 0 ? 0 : kill_below(g->fd, leaf);
}

int cgroup_remove_leaf(struct cgroup *g, const char *leaf)
{
	int r = 0;

	if (g->fd >= 0 && unlinkat(g->fd, leaf, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		if (g->v1_fd[c] >= 0 && unlinkat(g->v1_fd[c], leaf, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			r = -errno;
	return r;
}

int cgroup_kill(struct cgroup *g)
{
	return g->fd < 0 ? 0 : kill_below(g->fd, ".");
}

static bool is_frozen(int fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	return io_read_file(fd, "cgroup.events", &b) == 0 && b.len && strstr(b.data, "frozen 1");
}

/* A task freezes when it returns from the kernel: most do at once, some a little later. */
int cgroup_freeze(struct cgroup *g, bool on, int timeout_ms)
{
	uint64_t end = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct timespec nap = { .tv_nsec = 50 * (long)NS_PER_US };
	int r = g->fd < 0 ? -ENOENT : io_write_file(g->fd, "cgroup.freeze", on ? "1" : "0");

	while (r == 0 && on && !is_frozen(g->fd)) {
		if (clock_mono_ns() > end) {
			(void)io_write_file(g->fd, "cgroup.freeze", "0");
			return -ETIME;
		}
		(void)nanosleep(&nap, NULL);
	}
	return r;
}

static void remove_leaves(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *ent;

	if (!d) {
		fd_close(&copy);
		return;
	}
	while ((ent = readdir(d)))
		if (ent->d_type == DT_DIR && ent->d_name[0] != '.')
			(void)unlinkat(fd, ent->d_name, AT_REMOVEDIR);
	(void)closedir(d);
}

static int remove_group(int *fd, int parent_fd, const char *name, uint64_t end)
{
	if (*fd < 0)
		return 0;
	for (;;) {
		int err;

		remove_leaves(*fd);
		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
			break;
		err = errno;
		if (err == ENOENT)
			break;
		if (err != EBUSY || clock_mono_ns() > end)
			return -err;
		(void)poll(NULL, 0, 1);
	}
	fd_close(fd);
	return 0;
}

int cgroup_remove(struct cgroup *g, int timeout_ms)
{
	uint64_t end = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int r = 0, last;

	/* Remove the v2 group last: if it is gone, cleanup need not search for others. */
	for (int c = 0; c < CGROUP_CONTROLLERS && r == 0; c++)
		r = remove_group(&g->v1_fd[c], g->v1_parent_fd[c], g->name, end);
	last = remove_group(&g->fd, g->parent_fd, g->name, end);
	return r < 0 ? r : last;
}

void cgroup_done(struct cgroup *g)
{
	fd_close(&g->fd);
	fd_close(&g->parent_fd);
	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		fd_close(&g->v1_fd[c]);
		fd_close(&g->v1_parent_fd[c]);
	}
}
