/* SPDX-License-Identifier: Apache-2.0 */
#include "store/trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir.h"
#include "base/trace_name.h"

static int open_below(int state_fd, const char *dir, const char *stem, uint64_t start)
{
	char path[sizeof "sandboxes/" + ID_SIZE + TRACE_NAME], name[TRACE_NAME];
	int fd;

	trace_name(name, stem, start);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = openat(state_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int trace_file_open(int state_fd, const char *id, uint64_t start)
{
	char dir[sizeof "sandboxes/" + ID_SIZE];
	int fd;

	if (!state_id_ok(id))
		return -EINVAL;
	(void)snprintf(dir, sizeof dir, "sandboxes/%s", id);
	fd = open_below(state_fd, dir, "trace", start);
	return fd == -ENOENT ? open_below(state_fd, "ended", id, start) : fd;
}

/* Searches the greatest start up to `offset`, else the smallest one. */
struct search {
	const char *stem;
	uint64_t offset, below, above;
	bool has_below, has_above;
};

static void consider(struct search *s, const char *name)
{
	struct str stem;
	uint64_t start;

	if (!trace_name_parse(name, &stem, &start) || !str_is(stem, s->stem))
		return;
	if (start <= s->offset && (!s->has_below || start > s->below)) {
		s->below = start;
		s->has_below = true;
	} else if (start > s->offset && (!s->has_above || start < s->above)) {
		s->above = start;
		s->has_above = true;
	}
}

static void search_dir(int state_fd, const char *path, struct search *s)
{
	auto_done(dir_free) DIR *d = dir_open_at(state_fd, path);

	for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d))
		consider(s, x->d_name);
}

int trace_file_find(int state_fd, const char *id, uint64_t offset, uint64_t *start)
{
	struct search s = { .stem = "trace", .offset = offset };
	char dir[sizeof "sandboxes/" + ID_SIZE];
	int fd;

	if (!state_id_ok(id))
		return -EINVAL;
	(void)snprintf(dir, sizeof dir, "sandboxes/%s", id);
	search_dir(state_fd, dir, &s);
	s.stem = id;
	search_dir(state_fd, "ended", &s);
	if (!s.has_below && !s.has_above)
		return -ENOENT;
	fd = trace_file_open(state_fd, id, s.has_below ? s.below : s.above);
	if (fd >= 0)
		*start = s.has_below ? s.below : s.above;
	return fd;
}

int trace_file_last(int state_fd, const char *id, uint64_t *start)
{
	return trace_file_find(state_fd, id, UINT64_MAX, start);
}
