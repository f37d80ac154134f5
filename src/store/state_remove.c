/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove a dead sandbox. First kill its processes, so that nothing fills what we empty. Then save
 * the trace and remove the files, the control groups, and last the lock: without a lock there is
 * nothing else.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/str.h"
#include "store/groups.h"
#include "store/state.h"
#include "store/storage.h"
#include "sys/files/rmtree.h"

enum { KEEP_MOST = 1 << 20, ENDED_SIZE = ID_SIZE + sizeof ".jsonl" - 1 };

struct ended {
	uint64_t mtime_ns;
	char name[ENDED_SIZE];
};

static size_t keep_ended(void)
{
	const char *v = getenv("CAY_KEEP_ENDED");
	char *end;
	unsigned long n;

	if (!v || v[0] < '0' || v[0] > '9')
		return LIMIT_ENDED;
	errno = 0;
	n = strtoul(v, &end, 10);
	if (errno || *end)
		return LIMIT_ENDED;
	return n < KEEP_MOST ? n : KEEP_MOST;
}

static bool is_ended(const char *name)
{
	const char *dot = strchr(name, '.');
	char id[ID_SIZE];

	return dot && strcmp(dot, ".jsonl") == 0 &&
	       str_copy(id, sizeof id, (struct str){ name, (size_t)(dot - name) }) &&
	       state_id_ok(id);
}

static size_t count_ended(DIR *d)
{
	size_t n = 0;

	for (struct dirent *x = readdir(d); x; x = readdir(d))
		n += is_ended(x->d_name);
	rewinddir(d);
	return n;
}

static int newest_first(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Read up to n entries into all; returns their number. Skips those that others remove meanwhile. */
static size_t list_ended(DIR *d, struct ended *all, size_t n)
{
	size_t have = 0;

	for (struct dirent *x = readdir(d); x && have < n; x = readdir(d)) {
		struct stat st;

		if (!is_ended(x->d_name) ||
		    fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		all[have].mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
		(void)str_copy(all[have].name, sizeof all[have].name, str_of(x->d_name));
		have++;
	}
	return have;
}

/* Allow an eighth above the limit, so that not every removal checks every file. */
static int trim_ended(DIR *d, size_t keep)
{
	size_t n = count_ended(d);
	auto_free struct ended *all = NULL;
	int r = 0;

	if (n <= keep + keep / 8)
		return 0;
	all = calloc(n, sizeof *all);
	if (!all)
		return -ENOMEM;
	n = list_ended(d, all, n);
	qsort(all, n, sizeof *all, newest_first);
	for (size_t i = keep; i < n; i++)
		if (unlinkat(dirfd(d), all[i].name, 0) < 0 && errno != ENOENT && r == 0)
			r = -errno;
	return r;
}

int state_save_trace(const struct state *s, const char *id)
{
	char from[sizeof "sandboxes/" + ID_SIZE + sizeof "/trace.jsonl"];
	char to[sizeof "ended/" + ENDED_SIZE];

	(void)snprintf(from, sizeof from, "sandboxes/%s/trace.jsonl", id);
	(void)snprintf(to, sizeof to, "ended/%s.jsonl", id);
	if (renameat(s->fd, from, s->fd, to) < 0)
		return errno == ENOENT ? 0 : -errno;
	failpoint("remove.trace");
	return 1;
}

int state_trim_ended(const struct state *s)
{
	size_t keep = keep_ended();
	DIR *d;
	int fd, r;

	fd = openat(s->fd, "ended", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	r = trim_ended(d, keep);
	(void)closedir(d);
	return r;
}

static int remove_files(const struct state *s, const char *id, struct err *e)
{
	auto_close int boxes = openat(s->fd, "sandboxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (boxes < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "cannot open %s/sandboxes", s->dir);
	r = state_save_trace(s, id);
	if (r > 0)
		r = state_trim_ended(s);
	if (r < 0)
		return err_sys(e, -r, "cannot keep the trace of '%s' in %s/ended", id, s->dir);
	r = rmtree_at(boxes, id);
	failpoint("remove.files");
	if (r == 0)
		return 0;
	err_sys(e, -r, "cannot remove all of %s/sandboxes/%s", s->dir, id);
	if (r == -EXDEV || r == -EBUSY)
		return err_hint(e, "something is mounted there: unmount it");
	if (r == -EPERM || r == -EACCES)
		return err_hint(e, "some files there belong to other users: remove it as root");
	return -1;
}

static int remove_lock(const struct state *s, const char *id, struct err *e)
{
	char lock[sizeof "locks/" + ID_SIZE];

	(void)snprintf(lock, sizeof lock, "locks/%s", id);
	if (unlinkat(s->fd, lock, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot remove %s/%s", s->dir, lock);
	failpoint("remove.lock");
	return 0;
}

/* own: this process's group, or negative if it has none. */
static int end_processes(int own, const char *id, struct err *e)
{
	int r = own < 0 ? 0 : groups_kill(own, id);

	if (own < 0 && own != -ENOENT)
		return err_sys(e, -own, "cannot open the control group of this process");
	return r < 0 ? err_sys(e, -r, "cannot kill control group cay-%s", id) : 0;
}

static int remove_groups(int own, const char *id, struct err *e)
{
	int r = groups_remove(own, id);

	return r < 0 ? err_sys(e, -r, "cannot remove control group cay-%s", id) : 0;
}

int state_end_processes(const char *id, struct err *e)
{
	auto_close int own = groups_open();

	return end_processes(own, id, e) < 0 ? -1 : remove_groups(own, id, e);
}

static int remove_all(const struct state *s, const char *id, struct err *e)
{
	auto_close int own = groups_open();

	if (end_processes(own, id, e) < 0 || remove_files(s, id, e) < 0 ||
	    pool_drop(s, id, e) < 0 || remove_groups(own, id, e) < 0)
		return -1;
	return remove_lock(s, id, e);
}

int state_remove(const struct state *s, const char *id, int lock_fd, struct err *e)
{
	int r;

	if (state_id_ok(id))
		r = remove_all(s, id, e);
	else
		r = err_set(e, ERR_INVALID, "'%s' is not a sandbox id", id);
	fd_close(&lock_fd);
	return r;
}
