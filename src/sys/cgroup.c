/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"

enum { PROC_FILE_MAX = 256 * 1024 };

/* Mount point of the v2 hierarchy, from mountinfo: "... MOUNTPOINT ... - cgroup2 ...". */
static int find_mount(char *out, size_t size)
{
	auto_done(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX);
	char *save = NULL;
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", &text);

	if (r < 0)
		return r;
	for (char *line = strtok_r(text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char point[LIMIT_PATH];

		if (!strstr(line, " - cgroup2 "))
			continue;
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			continue;
		return str_copy(out, size, str_of(point)) ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}

/* Our own group in it: the line "0::/path" of /proc/self/cgroup. */
static int find_own(char *out, size_t size)
{
	auto_done(buf_done) struct buf text = BUF_INIT(PROC_FILE_MAX);
	char *at;
	int r = io_read_file(AT_FDCWD, "/proc/self/cgroup", &text);

	if (r < 0)
		return r;
	at = strncmp(text.data, "0::", 3) == 0 ? text.data : strstr(text.data, "\n0::");
	if (!at)
		return -ENOENT;
	at = strchr(at, '/');
	if (!at)
		return -ENOENT;
	at[strcspn(at, "\n")] = '\0';
	return str_copy(out, size, str_of(at)) ? 0 : -ENAMETOOLONG;
}

static int open_own(void)
{
	char mount[LIMIT_PATH], own[LIMIT_PATH], path[2 * LIMIT_PATH];
	int fd, r = find_mount(mount, sizeof mount);

	if (r == 0)
		r = find_own(own, sizeof own);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof path, "%s%s", mount, own);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_dir(int parent, const char *name)
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

	*g = (struct cgroup){ .fd = FD_NONE, .parent_fd = FD_NONE };
	(void)snprintf(g->name, sizeof g->name, "cay-%s", id);
	r = open_own();
	if (r < 0)
		return r;
	g->parent_fd = r;
	r = make_dir(g->parent_fd, g->name);
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
	fd = make_dir(g->fd, leaf);
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
	if (g->fd < 0 || unlinkat(g->fd, leaf, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

int cgroup_kill(struct cgroup *g)
{
	return g->fd < 0 ? 0 : kill_below(g->fd, ".");
}

static int remove_leaves(const struct cgroup *g)
{
	int copy = openat(g->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *ent;

	if (!d) {
		fd_close(&copy);
		return -errno;
	}
	while ((ent = readdir(d)))
		if (ent->d_type == DT_DIR && ent->d_name[0] != '.')
			(void)unlinkat(g->fd, ent->d_name, AT_REMOVEDIR);
	(void)closedir(d);
	return 0;
}

int cgroup_remove(struct cgroup *g, int timeout_ms)
{
	uint64_t end = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	if (g->fd < 0)
		return 0;
	for (;;) {
		int err;

		(void)remove_leaves(g);
		if (unlinkat(g->parent_fd, g->name, AT_REMOVEDIR) == 0)
			break;
		err = errno;
		if (err == ENOENT)
			break;
		if (err != EBUSY || clock_mono_ns() > end)
			return -err;
		(void)poll(NULL, 0, 1);
	}
	fd_close(&g->fd);
	return 0;
}

void cgroup_done(struct cgroup *g)
{
	fd_close(&g->fd);
	fd_close(&g->parent_fd);
}
