/* SPDX-License-Identifier: Apache-2.0 */
#include "init/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/ns/caps.h"

enum { STATUS_SIZE = 16384, ID_FS = 3 /* real, effective, saved, file system */ };

/* The text behind "\nKEY:"; the kernel escapes newlines in the name of the process. */
static const char *value_of(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? at + strlen(key) : NULL;
}

static int parse_id(const char *at, unsigned *ret)
{
	char *end = NULL;

	for (int i = 0; at && i <= ID_FS; i++, at = end) {
		*ret = (unsigned)strtoul(at, &end, 10);
		if (end == at)
			return -EBADMSG;
	}
	return at ? 0 : -EBADMSG;
}

static int parse_groups(const char *at, struct caller *ret)
{
	char *end;

	ret->ngroups = 0;
	while (at && *at != '\n' && *at != '\0') {
		unsigned long gid = strtoul(at, &end, 10);

		if (end == at || ret->ngroups == CALLER_GROUPS)
			return -EBADMSG;
		ret->groups[ret->ngroups++] = (gid_t)gid;
		at = end + strspn(end, " \t");
	}
	return at ? 0 : -EBADMSG;
}

int caller_parse(const char *status, struct caller *ret)
{
	const char *caps = value_of(status, "\nCapEff:"), *groups = value_of(status, "\nGroups:");
	int r = parse_id(value_of(status, "\nUid:"), &ret->uid);

	if (r == 0)
		r = parse_id(value_of(status, "\nGid:"), &ret->gid);
	if (r == 0)
		r = parse_groups(groups ? groups + strspn(groups, " \t") : NULL, ret);
	if (r < 0 || !caps)
		return -EBADMSG;
	ret->caps = strtoull(caps, NULL, 16);
	return 0;
}

static int open_proc(int tid, const char *what, int flags)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", tid, what);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_status(int tid, char text[STATUS_SIZE])
{
	auto_close int fd = open_proc(tid, "status", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, STATUS_SIZE - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* Capabilities count in the namespace that they were given in: with --nested anybody has all. */
static int has_our_users(int tid, bool *ret)
{
	struct stat own, other;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", tid);
	if (stat("/proc/self/ns/user", &own) < 0 || stat(path, &other) < 0)
		return -errno;
	*ret = own.st_dev == other.st_dev && own.st_ino == other.st_ino;
	return 0;
}

int caller_open(int tid, struct caller *ret)
{
	char text[STATUS_SIZE];
	bool ours = false;
	int r = read_status(tid, text);

	if (r == 0)
		r = caller_parse(text, ret);
	if (r == 0)
		r = has_our_users(tid, &ours);
	if (r < 0)
		return r;
	if (!ours)
		ret->caps = 0;
	ret->own_uid = geteuid();
	ret->own_gid = getegid();
	ret->own_ngroups = getgroups(CALLER_GROUPS, ret->own_groups);
	if (ret->own_ngroups < 0)
		return -errno;
	ret->own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ret->own_root < 0 ? -errno : 0;
}

int caller_dir(int tid, int dirfd)
{
	char link[32] = "cwd";

	if (dirfd != AT_FDCWD)
		(void)snprintf(link, sizeof link, "fd/%d", dirfd);
	return open_proc(tid, link, O_PATH);
}

int caller_root(int tid)
{
	auto_close int root = open_proc(tid, "root", O_PATH);
	struct stat own, other;

	if (root < 0)
		return root;
	if (stat("/", &own) < 0 || fstat(root, &other) < 0)
		return -errno;
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		return 0;
	return fchdir(root) < 0 || chroot(".") < 0 ? -errno : 0;
}

/* A sandbox with one id denies setgroups(2); all processes then have the same groups. */
static int take_groups(const gid_t *groups, int n)
{
	return setgroups((size_t)n, groups) < 0 && errno != EPERM ? -errno : 0;
}

int caller_become(const struct caller *c)
{
	int r = take_groups(c->groups, c->ngroups);

	if (r < 0)
		return r;
	(void)setfsgid(c->gid);
	(void)setfsuid(c->uid);
	/* setfsuid() reports no failure, only the previous value. */
	if ((uid_t)setfsuid(c->uid) != c->uid || (gid_t)setfsgid(c->gid) != c->gid)
		return -EPERM;
	return caps_use(c->caps);
}

int caller_leave(struct caller *c)
{
	int r;

	(void)caps_use(~0ull);
	(void)setfsuid(c->own_uid);
	(void)setfsgid(c->own_gid);
	(void)take_groups(c->own_groups, c->own_ngroups);
	(void)caps_use(~0ull); /* setfsuid() may have removed some */
	r = fchdir(c->own_root) < 0 || chroot(".") < 0 ? -errno : 0;
	fd_close(&c->own_root);
	return r;
}
