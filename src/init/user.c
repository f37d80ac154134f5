/* SPDX-License-Identifier: Apache-2.0 */
#include "init/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"

enum { DB_MAX = 1 << 20, FIELDS_MAX = 7, SETTLED_S = 2 };

/* True if the text is a whole number and nothing else. */
static bool to_id(const char *text, uint32_t *ret)
{
	char *end = NULL;
	unsigned long v;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static int split(char *line, char *fields[FIELDS_MAX])
{
	int n = 0;

	for (char *at = line; at && n < FIELDS_MAX; n++) {
		fields[n] = at;
		at = strchr(at, ':');
		if (at)
			*at++ = '\0';
	}
	return n;
}

/* Only a regular file: the sandbox's root may have put a fifo or a terminal there. */
static int read_db(const char *path, struct buf *text)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? io_read_all(fd, text) : -EINVAL;
}

/* Call fn for each line's fields until it returns true. The file may be missing. */
static void each_line(const char *path, int want, bool (*fn)(void *ctx, char **fields), void *ctx)
{
	auto_done(buf_done) struct buf text = BUF_INIT(DB_MAX);
	char *save = NULL, *fields[FIELDS_MAX];

	if (read_db(path, &text) < 0 || text.len == 0)
		return;
	for (char *line = strtok_r(text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (split(line, fields) >= want && fn(ctx, fields))
			return;
}

struct search {
	struct user *user;
	const char *name; /* NULL: by uid */
	bool found;
};

static bool match_passwd(void *ctx, char **f)
{
	struct search *s = ctx;
	struct user *u = s->user;
	uint32_t uid, gid;

	/* Without a name it would be a member of every group with an empty member list. */
	if (!f[0][0] || !to_id(f[2], &uid) || !to_id(f[3], &gid))
		return false;
	if (s->name ? strcmp(f[0], s->name) != 0 : uid != u->uid)
		return false;
	(void)snprintf(u->name, sizeof u->name, "%s", f[0]);
	(void)snprintf(u->home, sizeof u->home, "%s", f[5]);
	(void)snprintf(u->shell, sizeof u->shell, "%s", f[6]);
	u->uid = uid;
	u->gid = gid;
	s->found = true;
	return true;
}

static bool is_member(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
			return true;
	}
	return false;
}

static bool add_group(void *ctx, char **f)
{
	struct user *u = ctx;
	uint32_t gid;

	if (to_id(f[2], &gid) && gid != u->gid && is_member(f[3], u->name))
		u->groups[u->ngroups++] = gid;
	return u->ngroups == USER_GROUPS;
}

int user_find(const char *ref, struct user *ret)
{
	struct user u = { .home = "/", .shell = "/bin/sh" };
	struct search s = { .user = &u, .name = ref };
	char copy[64], *colon;
	uint32_t uid, gid = 0;
	bool has_gid = false;

	if (strlen(ref) >= sizeof copy)
		return -ENOENT;
	memcpy(copy, ref, strlen(ref) + 1);
	colon = strchr(copy, ':');
	if (colon) {
		*colon = '\0';
		has_gid = to_id(colon + 1, &gid);
		if (!has_gid)
			return -EINVAL;
	}
	s.name = copy;
	if (to_id(copy, &uid)) {
		s.name = NULL;
		u.uid = uid;
		u.gid = uid;
		(void)snprintf(u.name, sizeof u.name, "%s", copy);
	}
	each_line("/etc/passwd", 7, match_passwd, &s);
	if (!s.found && s.name)
		return -ENOENT;
	if (has_gid)
		u.gid = gid;
	else if (s.found)
		each_line("/etc/group", 4, add_group, &u);
	*ret = u;
	return 0;
}

/* A file's state when it was read; the sandbox cannot set a ctime. */
struct stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec ctime;
};

static struct {
	char ref[64];
	struct stamp passwd, group;
	struct user user;
	int result;
	bool valid;
} last;

/* False if the file could still change unnoticed. */
static bool stamp_of(const char *path, struct stamp *ret)
{
	struct stat st;

	*ret = (struct stamp){ 0 };
	if (stat(path, &st) < 0)
		return errno == ENOENT;
	*ret = (struct stamp){ st.st_dev, st.st_ino, st.st_size, st.st_ctim };
	return (uint64_t)st.st_ctim.tv_sec + SETTLED_S < clock_real_ns() / NS_PER_S;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->ctime.tv_sec == b->ctime.tv_sec && a->ctime.tv_nsec == b->ctime.tv_nsec;
}

void user_remember(const char *ref)
{
	struct stamp passwd, group;
	bool settled = stamp_of("/etc/passwd", &passwd) && stamp_of("/etc/group", &group);
	bool same = last.valid && strcmp(last.ref, ref) == 0 && settled &&
		    same_stamp(&last.passwd, &passwd) && same_stamp(&last.group, &group);

	if (same)
		return;
	last.valid = settled && strlen(ref) < sizeof last.ref;
	if (!last.valid)
		return;
	memcpy(last.ref, ref, strlen(ref) + 1);
	last.passwd = passwd;
	last.group = group;
	last.result = user_find(ref, &last.user);
}

int user_recall(const char *ref, struct user *ret)
{
	if (!last.valid || strcmp(last.ref, ref) != 0)
		return user_find(ref, ret);
	if (last.result == 0)
		*ret = last.user;
	return last.result;
}
