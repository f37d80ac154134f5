/* SPDX-License-Identifier: Apache-2.0 */
#include "store/groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"

enum {
	PROC_FILE_MAX = 4 << 20, /* mountinfo of a host with thousands of mounts */
	DEPTH = 8,		 /* we make two levels */
	WAIT_MS = 200,
};

/* Cut the next piece up to `sep` off s. */
static struct str cut(struct str *s, char sep)
{
	const char *end = s->n ? memchr(s->p, sep, s->n) : NULL;
	struct str piece = { s->p, end ? (size_t)(end - s->p) : s->n };
	size_t used = piece.n + (end ? 1 : 0);

	s->p += used;
	s->n -= used;
	return piece;
}

/* The path after `0::` of /proc/self/cgroup. */
static bool own_group(struct str text, struct str *ret)
{
	while (text.n) {
		struct str line = cut(&text, '\n');

		if (!str_starts(line, STR("0::/")))
			continue;
		*ret = (struct str){ line.p + 3, line.n - 3 };
		return true;
	}
	return false;
}

/* proc(5): id parent dev root mountpoint options optional... - type source options */
static bool is_cgroup2(struct str line, struct str *ret_root, struct str *ret_at)
{
	for (int i = 0; i < 3; i++)
		(void)cut(&line, ' ');
	*ret_root = cut(&line, ' ');
	*ret_at = cut(&line, ' ');
	while (line.n)
		if (str_is(cut(&line, ' '), "-"))
			return str_is(cut(&line, ' '), "cgroup2");
	return false;
}

/* Where a mount of a part of the tree shows the group, that part's own path is not in it. */
static bool below_root(struct str own, struct str root, struct str *ret)
{
	*ret = own;
	if (str_is(root, "/"))
		return true;
	if (!str_starts(own, root) || (own.n > root.n && own.p[root.n] != '/'))
		return false;
	*ret = (struct str){ own.p + root.n, own.n - root.n };
	return true;
}

static int open_at(struct str at, struct str rest)
{
	char path[LIMIT_PATH];
	int n = snprintf(path, sizeof path, "%.*s/%.*s", STR_ARG(at), STR_ARG(rest));
	int fd;

	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? -ENOENT : -errno;
	return fd;
}

int groups_open(void)
{
	auto_done(buf_done) struct buf groups = BUF_INIT(PROC_FILE_MAX);
	auto_done(buf_done) struct buf mounts = BUF_INIT(PROC_FILE_MAX);
	struct str own, root, at, rest, text;
	int r = io_read_file(AT_FDCWD, "/proc/self/cgroup", &groups);

	if (r == 0)
		r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", &mounts);
	if (r < 0 || !own_group(buf_str(&groups), &own))
		return r < 0 ? r : -ENOENT;
	text = buf_str(&mounts);
	while (text.n)
		if (is_cgroup2(cut(&text, '\n'), &root, &at) && below_root(own, root, &rest))
			return open_at(at, rest);
	return -ENOENT;
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

/* rmdir once the last process has left; it waits for exits that have been ordered already. */
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

int groups_remove(int own, const char *id)
{
	char name[64];

	group_name(name, id);
	return remove_group(own, name, clock_mono_ns() + WAIT_MS * NS_PER_MS, 0);
}
