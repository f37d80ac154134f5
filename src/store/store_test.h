/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the store: each gets its own temporary state directory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "store/catalog.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char t_dir[64];
static struct err t_e;

#define OK(call)       ((call) == 0 ? (void)0 : t_fail_str(__FILE__, __LINE__, t_e.msg, "no error"))
#define FAILS(call, k) CHECK((call) == -1 && t_e.kind == (k))
#define SAYS(text, sub) \
	(strstr((text), (sub)) ? (void)0 : t_fail_str(__FILE__, __LINE__, (text), (sub)))

static inline void t_remove_dir(void)
{
	auto_close int shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* Start at its own file system: rmtree enters no other. */
	(void)rmtree_at(strncmp(t_dir, "/tmp/", 5) == 0 ? tmp : shm, strrchr(t_dir, '/') + 1);
}

/* A directory for the test and CAY_STATE below it; removed when the test's process ends. */
static inline void t_state(struct state *s)
{
	char dir[80];

	/* In memory: many durable writes at once take seconds on a busy disk. */
	t_scratch(t_dir, sizeof t_dir);
	CHECK(atexit(t_remove_dir) == 0);
	snprintf(dir, sizeof dir, "%s/s", t_dir);
	CHECK(setenv("CAY_STATE", dir, 1) == 0);
	OK(state_open(s, &t_e));
}

static inline bool t_there(const struct state *s, const char *path)
{
	return faccessat(s->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void t_put(const struct state *s, const char *path, const char *text)
{
	auto_close int fd = openat(s->fd, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

static inline const char *t_path(const char *dir, const char *id, const char *tail)
{
	static char out[4][128];
	static int i;

	i = (i + 1) % 4;
	snprintf(out[i], sizeof out[i], "%s/%s%s", dir, id, tail);
	return out[i];
}

/* The directory of a sandbox as a warden leaves it. */
static inline void t_make_box(const struct state *s, const char *id)
{
	CHECK(mkdirat(s->fd, t_path("sandboxes", id, ""), 0700) == 0);
	CHECK(mkdirat(s->fd, t_path("sandboxes", id, "/upper"), 0700) == 0);
	t_put(s, t_path("sandboxes", id, "/upper/file"), "x");
	t_put(s, t_path("sandboxes", id, "/trace.jsonl"), "{}\n");
}

static inline struct sandbox_row t_row(const char *id, const char *name, bool ephemeral)
{
	struct sandbox_row row = { .ephemeral = ephemeral, .template_ = "base", .uid_slot = -1 };

	snprintf(row.id, sizeof row.id, "%s", id);
	snprintf(row.name, sizeof row.name, "%s", name);
	return row;
}

static inline int t_add(struct catalog *c, const char *id, const char *name, bool ephemeral)
{
	struct sandbox_row row = t_row(id, name, ephemeral);

	return catalog_add_sandbox(c, &row, false, &t_e);
}

static inline bool t_has_row(struct catalog *c, const char *id)
{
	struct sandbox_row row = { 0 };
	bool has = catalog_find(c, id, &row, &t_e) == 0;

	sandbox_row_done(&row);
	return has;
}

static inline void t_wait_all(const pid_t *pids, int n)
{
	for (int i = 0; i < n; i++) {
		int st;

		CHECK(waitpid(pids[i], &st, 0) == pids[i] && st == 0);
	}
}

static inline void t_nothing(void)
{
}

/* For a test that this machine cannot run: reports it as skipped in TAP. */
#define T_SKIP(fn, why) \
	{ \
#fn " # SKIP " why, t_nothing \
	}
