/* SPDX-License-Identifier: Apache-2.0 */
#include "store/starts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/sha256.h"
#include "store/db.h"

int start_id_new(char out[ID_SIZE], struct err *e)
{
	if (state_id_new(out, e) < 0)
		return -1;
	out[0] = '0';
	return 0;
}

static int exists_now(struct catalog *c, const char *start, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT 1 FROM layers WHERE id = ?1", "t", start) < 0)
		return -1;
	return db_step(c, q, e);
}

/* One transaction: the start is either gone, or exists and is held. */
static int add_hold(struct catalog *c, const char *start, bool exists, const char *id,
		    struct err *e)
{
	int r = exists ? exists_now(c, start, e) : 1;

	if (r <= 0)
		return r;
	if (db_do(c, e,
		  "INSERT INTO snapshots(id, kind, sandbox, top, created_ns)"
		  " VALUES(?1, ?2, ?1, ?3, ?4)",
		  "titi", id, (int64_t)SNAPSHOT_FORK, start, (int64_t)clock_real_ns()) < 0)
		return -1;
	return 1;
}

int start_hold(struct catalog *c, const struct state *s, const char *start, bool exists,
	       struct start_hold *ret, struct err *e)
{
	char id[ID_SIZE];
	int fd = FD_NONE, r;

	if (state_id_new(id, e) < 0 || state_lock(s, id, &fd, e) < 0)
		return -1;
	r = db_begin(c, false, e);
	if (r == 0) {
		r = add_hold(c, start, exists, id, e);
		r = db_end(c, r < 0 ? -1 : 0, e) < 0 ? -1 : r;
	}
	if (r <= 0) {
		state_unlock(s, id, fd);
		return r;
	}
	(void)str_copy(ret->id, sizeof ret->id, str_of(id));
	ret->lock_fd = fd;
	return 1;
}

void start_release(struct catalog *c, const struct state *s, struct start_hold *h)
{
	struct err ignored = { 0 };

	if (!h->id[0])
		return;
	(void)catalog_del_snapshot(c, h->id, &ignored);
	state_unlock(s, h->id, h->lock_fd);
	h->id[0] = '\0';
}

int catalog_add_start(struct catalog *c, const char *start, const char *top, struct err *e)
{
	return db_do(
		c, e, "INSERT INTO layers(id, parent, level, created_ns) VALUES(?1, ?2, ?3, ?4)",
		"ttii", start, top[0] ? top : NULL, (int64_t)START_LEVEL, (int64_t)clock_real_ns());
}

int catalog_has_start(struct catalog *c, const char *start, const char *top, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(
		    c, &q, e,
		    "SELECT 1 FROM layers WHERE id = ?1 AND level = ?2 AND ifnull(parent, '') = ?3",
		    "tit", start, (int64_t)START_LEVEL, top) < 0)
		return -1;
	return db_step(c, q, e);
}

static int set_top(struct catalog *c, const char *sandbox, const char *start, const char *top,
		   struct err *e)
{
	if (db_do(c, e, "UPDATE sandboxes SET top = ?2 WHERE id = ?1 AND ifnull(top, '') = ?3",
		  "ttt", sandbox, start, top) < 0)
		return -1;
	if (sqlite3_changes(c->db))
		return 0;
	err_set(e, ERR_CONFLICT, "the layers of sandbox '%s' were merged meanwhile", sandbox);
	e->sys = ESTALE;
	return -1;
}

int catalog_set_start(struct catalog *c, const char *sandbox, const char *start, const char *top,
		      struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, set_top(c, sandbox, start, top, e), e);
}

static void link_path(const char *key, char out[SHA256_HEX + 16])
{
	char hash[SHA256_HEX];

	sha256_name(key, hash);
	(void)snprintf(out, SHA256_HEX + 16, "starts/%s", hash);
}

int starts_find(const struct state *s, const char *key, char out[64])
{
	char path[SHA256_HEX + 16];
	ssize_t n;

	link_path(key, path);
	n = readlinkat(s->fd, path, out, 63);
	if (n <= 0)
		return 0;
	out[n] = '\0';
	return out[0] == '0' && strspn(out, "abcdefghijklmnopqrstuvwxyz0123456789/") == (size_t)n;
}

void starts_remember(const struct state *s, const char *key, const char *start, int mount)
{
	char path[SHA256_HEX + 16], made[64], target[64];

	link_path(key, path);
	(void)snprintf(made, sizeof made, "starts/new-%s", start);
	(void)snprintf(target, sizeof target, "%s/%d", start, mount);
	if (io_mkdir(s->fd, "starts", 0700) < 0)
		return;
	failpoint("start.linking");
	if (symlinkat(target, s->fd, made) == 0 && renameat(s->fd, made, s->fd, path) < 0)
		(void)unlinkat(s->fd, made, 0);
}

void starts_sweep(const struct state *s)
{
	auto_done(dir_free) DIR *d = dir_open_at(s->fd, "starts");
	struct dirent *x;

	while (d && (x = readdir(d))) {
		char target[64], path[80];
		ssize_t n = readlinkat(dirfd(d), x->d_name, target, sizeof target - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		(void)snprintf(path, sizeof path, "layers/%s", target);
		if (faccessat(s->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
			(void)unlinkat(dirfd(d), x->d_name, 0);
	}
}
