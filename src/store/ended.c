/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of ended sandboxes: the segments of their traces, and the note of an end that is
 * missing in the trace. Limited by number and by age; all files of one sandbox are removed
 * together.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/trace_name.h"
#include "store/state.h"
#include "store/trace_files.h"

enum { KEEP_MOST = 1 << 20, DAYS_MOST = 100000, ENDED_NAME = ID_SIZE + 32, DAY_S = 24 * 3600 };

struct ended_file {
	char id[ID_SIZE], name[ENDED_NAME];
	uint64_t mtime_ns; /* after grouping: of the newest file of this id */
};

struct ended_list {
	struct ended_file *all;
	size_t n;
};

static void ended_list_done(struct ended_list *l)
{
	free(l->all);
}
DEFINE_AUTO(struct ended_list, ended_list_done)

/* A number from 0 to most; anything else is the default. */
static size_t setting(const char *name, size_t most, size_t def)
{
	const char *v = getenv(name);
	char *end;
	unsigned long n;

	if (!v || v[0] < '0' || v[0] > '9')
		return def;
	errno = 0;
	n = strtoul(v, &end, 10);
	if (errno || *end)
		return def;
	return n < most ? n : most;
}

bool state_is_ended_file(const char *name, char ret_id[ID_SIZE])
{
	struct str stem;
	uint64_t start;
	size_t n = strcspn(name, ".");

	if (!trace_name_parse(name, &stem, &start)) {
		if (strcmp(name + n, "." END_NOTE) != 0)
			return false;
		stem = (struct str){ name, n };
	}
	return str_copy(ret_id, ID_SIZE, stem) && state_id_ok(ret_id);
}

/* Skips files that others remove meanwhile. */
static int list_ended(DIR *d, struct ended_list *ret)
{
	size_t room = 0;

	for (struct dirent *x = readdir(d); x; x = readdir(d)) {
		struct ended_file f = { 0 };
		struct stat st;

		if (!state_is_ended_file(x->d_name, f.id) ||
		    !str_copy(f.name, sizeof f.name, str_of(x->d_name)) ||
		    fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.mtime_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
		if (ret->n == room) {
			void *more = reallocarray(ret->all, room * 2 + 64, sizeof *ret->all);

			if (!more)
				return -ENOMEM;
			ret->all = more;
			room = room * 2 + 64;
		}
		ret->all[ret->n++] = f;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct ended_file *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* Newest first; files of one id stand together, because they have the same time. */
static int newest_first(const void *a, const void *b)
{
	const struct ended_file *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? 1 : -1;
	return strcmp(x->id, y->id);
}

static bool same_id(const struct ended_list *l, size_t i)
{
	return i > 0 && strcmp(l->all[i].id, l->all[i - 1].id) == 0;
}

/* Gives all files of a sandbox the time of its newest. Returns how many sandboxes there are. */
static size_t group_ended(struct ended_list *l)
{
	size_t ids = 0, first = 0;

	if (l->n)
		qsort(l->all, l->n, sizeof *l->all, by_id);
	for (size_t i = 0; i < l->n; i++) {
		uint64_t newest;

		if (!same_id(l, i)) {
			first = i;
			ids++;
		}
		newest = l->all[first].mtime_ns > l->all[i].mtime_ns ? l->all[first].mtime_ns
								     : l->all[i].mtime_ns;
		for (size_t k = first; k <= i; k++)
			l->all[k].mtime_ns = newest;
	}
	if (l->n)
		qsort(l->all, l->n, sizeof *l->all, newest_first);
	return ids;
}

/* Allow an eighth above the limit, so that most removals have nothing to do. */
static int trim_ended(DIR *d, size_t keep, uint64_t oldest_ns)
{
	auto_done(ended_list_done) struct ended_list l = { 0 };
	int r = list_ended(d, &l);
	size_t ids = r < 0 ? 0 : group_ended(&l);
	bool many = ids > keep + keep / 8;
	size_t seen = 0;

	for (size_t i = 0; i < l.n && r >= 0; i++) {
		seen += !same_id(&l, i);
		if ((!many || seen <= keep) && l.all[i].mtime_ns >= oldest_ns)
			continue;
		if (unlinkat(dirfd(d), l.all[i].name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

int state_trim_ended(const struct state *s)
{
	size_t keep = setting("CAY_KEEP_ENDED", KEEP_MOST, LIMIT_ENDED);
	size_t days = setting("CAY_KEEP_DAYS", DAYS_MOST, LIMIT_ENDED_DAYS);
	uint64_t age_ns = (uint64_t)days * DAY_S * NS_PER_S, now = clock_real_ns();
	auto_done(dir_free) DIR *d = dir_open_at(s->fd, "ended");

	if (!d)
		return -errno;
	return trim_ended(d, keep, days && now > age_ns ? now - age_ns : 0);
}

/* 1: moved. */
static int save_file(const struct state *s, int dir, const char *name, const char *id)
{
	char to[sizeof "ended/" + ENDED_NAME];
	const char *rest = strcmp(name, END_NOTE) == 0 ? "." END_NOTE : strchr(name, '.');

	(void)snprintf(to, sizeof to, "ended/%s%s", id, rest);
	if (renameat(dir, name, s->fd, to) < 0)
		return errno == ENOENT ? 0 : -errno;
	failpoint("remove.trace");
	return 1;
}

int state_save_trace(const struct state *s, const char *id)
{
	char path[sizeof "sandboxes/" + ID_SIZE];
	auto_done(dir_free) DIR *d = NULL;
	int moved = 0;

	(void)snprintf(path, sizeof path, "sandboxes/%s", id);
	d = dir_open_at(s->fd, path);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *x = readdir(d); x; x = readdir(d)) {
		struct str stem;
		uint64_t start;
		int r;

		if (strcmp(x->d_name, END_NOTE) != 0 &&
		    (!trace_name_parse(x->d_name, &stem, &start) || !str_is(stem, "trace")))
			continue;
		r = save_file(s, dirfd(d), x->d_name, id);
		if (r < 0)
			return r;
		moved |= r;
	}
	return moved;
}
