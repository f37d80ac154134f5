/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of templates: a state directory, and a private host to change. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "image/template.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char state[64];

/* From its parent: removal enters no mount, and the path itself may be below one. */
static inline void rm(const char *path)
{
	char parent[LIMIT_PATH];
	const char *slash = strrchr(path, '/');
	auto_close int dir = FD_NONE;

	CHECK(slash &&
	      str_copy(parent, sizeof parent, (struct str){ path, (size_t)(slash - path) }));
	dir = open(parent[0] ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0 && rmtree_at(dir, slash + 1) == 0);
}

/* In memory if possible: tests make and remove thousands of small files. */
static inline void state_new(void)
{
	t_scratch(state, sizeof state);
}

static inline char *path_of(const char *rel)
{
	char *p;

	CHECK(asprintf(&p, "%s/%s", state, rel) > 0);
	return p;
}

static inline struct template resolve(const char *name)
{
	struct template t;
	struct err e;

	if (template_resolve(state, name, &t, &e) == 0)
		return t;
	printf("# %s\n", e.msg);
	t_fail(__FILE__, __LINE__, name);
}

static inline struct err refused(const char *dir, const char *name)
{
	struct template t;
	struct err e;

	CHECK(template_resolve(dir, name, &t, &e) == -1);
	return e;
}

static inline bool is_root(void)
{
	if (geteuid() != 0)
		printf("# skipped: needs root\n");
	return geteuid() == 0;
}

/* A private host: our own /etc and an empty or own dpkg directory, for this process only. */
static inline bool private_mounts(void)
{
	if (!is_root())
		return false;
	if (unshare(CLONE_NEWNS) < 0) {
		printf("# skipped: no mount namespace\n");
		return false;
	}
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	return true;
}

static inline void put(int dir, const char *name, mode_t mode, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
	CHECK(fchmod(fd, mode) == 0);
	fd_close(&fd);
}

/* Bind STATE/name over target; returns the directory. */
static inline int bind_own(const char *name, const char *target)
{
	auto_free char *p = path_of(name);
	int fd;

	CHECK(mkdir(p, 0755) == 0);
	fd = open(p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && mount(p, target, NULL, MS_BIND, NULL) == 0);
	return fd;
}

static inline void check_mode(const char *layer, const char *rel, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;
	char *p;

	CHECK(asprintf(&p, "%s/%s", layer, rel) > 0);
	if (lstat(p, &st) < 0 || (st.st_mode & 07777) != mode || st.st_uid != uid ||
	    st.st_gid != gid) {
		printf("# %s: %o %u:%u\n", p, st.st_mode, st.st_uid, st.st_gid);
		t_fail(__FILE__, __LINE__, rel);
	}
	free(p);
}

static inline void check_link(const char *layer, const char *rel, const char *want)
{
	char *p, got[256];
	ssize_t n;

	CHECK(asprintf(&p, "%s/%s", layer, rel) > 0);
	n = readlink(p, got, sizeof got - 1);
	CHECK(n > 0);
	got[n] = '\0';
	CHECK_STR(got, want);
	free(p);
}
