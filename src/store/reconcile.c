/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dead left behind. A creator holds the lock before there is anything else of its
 * sandbox, and its warden keeps it until the end. So: whatever is looked at without the lock is
 * only a guess; it is looked at again under the lock before anything is done, and who cannot
 * have the lock leaves the sandbox alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/str.h"
#include "store/db.h"
#include "store/lost.h"
#include "store/pool.h"

/*
 * A younger lock without anything else may belong to a creator that has yet to take it. It would
 * only have to try again, so who was asked to look at everything does not wait.
 */
enum { LOCK_MIN_AGE_S = 60 };

struct sweep {
	struct catalog *c;
	const struct state *s;
	int most;
	int removed;
	struct err first; /* failure */
	bool failed;
};

static void note(struct sweep *w, int r, const struct err *e)
{
	if (r < 0 && !w->failed) {
		w->failed = true;
		w->first = *e;
	}
}

/* 1: *ret_fd is its lock. 0: it is alive. */
static int lock_dead(struct sweep *w, const char *id, int *ret_fd, struct err *e)
{
	if (state_is_alive(w->s, id))
		return 0;
	if (state_lock(w->s, id, ret_fd, e) == 0)
		return 1;
	return e->kind == ERR_CONFLICT ? 0 : -1;
}

static int lose(struct sweep *w, const char *id, struct err *e)
{
	if (catalog_index_calls(w->c, w->s, id, e) < 0 || lost_keep(w->c, w->s, id, e) < 0)
		return -1;
	if (db_begin(w->c, true, e) < 0)
		return -1;
	if (db_lose_calls(w->c, id, e) < 0)
		return db_end(w->c, -1, e);
	return db_end(w->c,
		      db_do(w->c, e, "UPDATE sandboxes SET state = 'lost' WHERE id = ?1", "t", id),
		      e);
}

/* 1, or 0 where there are none. -1 where that cannot be told: they may be there. */
static int has_files(const struct state *s, const char *id, struct err *e)
{
	auto_close int fd = FD_NONE;

	if (state_sandbox_open(s, id, &fd, e) == 0)
		return 1;
	return e->kind == ERR_NOT_FOUND ? 0 : -1;
}

/*
 * The kernel ends init with the warden, and all others with init, but not in that moment: who still
 * writes would write to a sealed layer. So they are ended first, and where that takes long the
 * sandbox is left to who looks next.
 *
 * The lock is held, and given away. Where only the row is left, somebody who removes the
 * sandbox is about to delete that too: there is nothing that could be kept, but the lock, which
 * we have just made anew.
 */
static int settle(struct sweep *w, const char *id, int lock, struct err *e)
{
	auto_close int held = lock;
	struct sandbox_row row = { 0 };
	int keep = db_sandbox(w->c, "id = ?1", id, &row, e);

	sandbox_row_done(&row);
	if (keep > 0)
		keep = row.ephemeral || strcmp(row.state, "creating") == 0 ? 0
									   : has_files(w->s, id, e);
	if (keep < 0)
		return -1;
	if (keep && state_end_processes(id, e) < 0)
		return e->sys == EBUSY ? 0 : -1;
	if (keep)
		return strcmp(row.state, "lost") == 0 ? lost_keep(w->c, w->s, id, e)
						      : lose(w, id, e);
	if (state_remove(w->s, id, TAKE_FD(held), e) < 0)
		return -1;
	/* Last, for it holds the uid slot of what was there. */
	return catalog_del_sandbox(w->c, id, e) < 0 ? -1 : 1;
}

/* counts: whether the removal is of something that a person would miss. */
static void look(struct sweep *w, const char *id, bool counts)
{
	struct err e;
	int lock = FD_NONE;
	int r = lock_dead(w, id, &lock, &e);

	if (r > 0)
		r = settle(w, id, lock, &e);
	note(w, r, &e);
	w->removed += r > 0 && counts;
}

/* Where to begin among n things, of which only `most` are looked at. */
static size_t start_of(const struct sweep *w, size_t n)
{
	uint64_t r = 0;

	if (w->most <= 0 || (size_t)w->most >= n || random_bytes(&r, sizeof r) < 0)
		return 0;
	return r % n;
}

static size_t how_many(const struct sweep *w, size_t n)
{
	return w->most > 0 && (size_t)w->most < n ? (size_t)w->most : n;
}

/* Of one that was made ahead and is gone with its directory only this is left. */
static int sweep_uses(struct sweep *w, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	size_t n = 0;

	if (db_query(w->c, &q, e,
		     "SELECT DISTINCT sandbox FROM uses WHERE NOT EXISTS"
		     " (SELECT 1 FROM sandboxes WHERE id = uses.sandbox)",
		     "") < 0 ||
	    db_id_list(w->c, q, &ids, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < how_many(w, n); i++)
		look(w, ids[i], false);
	return 0;
}

/* 1: there is something to do about a row if it is dead. */
static int is_open(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT 1 FROM sandboxes WHERE id = ?1 AND (state <> 'lost'"
		     /* Begun by one who did not know yet that it is dead. */
		     " OR EXISTS (SELECT 1 FROM operations WHERE sandbox = ?1))",
		     "t", id) < 0)
		return -1;
	return db_step(c, q, e);
}

static int sweep_rows(struct sweep *w, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, start;

	if (db_ids(w->c, &ids, &n, e) < 0)
		return -1;
	start = start_of(w, n);
	for (size_t i = 0; i < how_many(w, n); i++) {
		const char *id = ids[(start + i) % n];
		int r = is_open(w->c, id, e);

		if (r < 0)
			return -1;
		if (r > 0)
			look(w, id, true);
	}
	return 0;
}

/* Add what a directory holds that is an id. 0 or -ENOMEM; *ret is the caller's in any case. */
static int add_names(DIR *d, char (**ret)[ID_SIZE], size_t *ret_n)
{
	size_t n = 0, room = 0;

	for (struct dirent *x = readdir(d); x; x = readdir(d)) {
		if (!state_id_ok(x->d_name))
			continue;
		if (n == room) {
			void *more = reallocarray(*ret, room + 64, 2 * sizeof **ret);

			if (!more)
				return -ENOMEM;
			*ret = more;
			room = (room + 64) * 2;
		}
		(void)str_copy((*ret)[n++], ID_SIZE, str_of(x->d_name));
	}
	*ret_n = n;
	return 0;
}

static int list_dir(const struct state *s, const char *dir, char (**ret)[ID_SIZE], size_t *ret_n,
		    struct err *e)
{
	int fd = openat(s->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int r = d ? add_names(d, ret, ret_n) : -errno;

	if (d)
		(void)closedir(d);
	else
		fd_close(&fd);
	return r < 0 ? err_sys(e, -r, "cannot read %s/%s", s->dir, dir) : 0;
}

static bool is_old(const struct state *s, const char *id)
{
	char path[sizeof "locks/" + ID_SIZE];
	struct stat st;

	(void)snprintf(path, sizeof path, "locks/%s", id);
	return fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_mtim.tv_sec + LOCK_MIN_AGE_S < clock_coarse_ns() / NS_PER_S;
}

/* 1: there is a row of it. */
static int has_row(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT 1 FROM sandboxes WHERE id = ?1", "t", id) < 0)
		return -1;
	return db_step(c, q, e);
}

/* What lies in dir and has no row. Locks count only once the rest is gone. */
static int sweep_dir(struct sweep *w, const char *dir, bool is_locks, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, start;

	if (list_dir(w->s, dir, &ids, &n, e) < 0)
		return -1;
	start = start_of(w, n);
	for (size_t i = 0; i < how_many(w, n); i++) {
		const char *id = ids[(start + i) % n];
		int r = is_locks && w->most > 0 && !is_old(w->s, id) ? 1 : has_row(w->c, id, e);

		if (r < 0)
			return -1;
		if (r == 0)
			look(w, id, !is_locks);
	}
	return 0;
}

int catalog_reconcile_one(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	struct sweep w = { .c = c, .s = s };

	look(&w, id, true);
	if (w.failed)
		*e = w.first;
	return w.failed ? -1 : 0;
}

int catalog_reconcile(struct catalog *c, const struct state *s, int most, int *ret_removed,
		      struct err *e)
{
	struct sweep w = { .c = c, .s = s, .most = most };
	struct err broken;
	int r = sweep_rows(&w, &broken);

	if (r == 0)
		r = sweep_uses(&w, &broken);
	if (r == 0)
		r = sweep_dir(&w, "sandboxes", false, &broken);
	/* Subvolumes of which nothing else is left. What is not mounted is looked at once it is. */
	if (r == 0 && pool_exists(s))
		r = sweep_dir(&w, "pool", false, &broken);
	if (r == 0)
		r = sweep_dir(&w, "locks", true, &broken);
	note(&w, r, &broken);
	if (ret_removed)
		*ret_removed = w.removed;
	if (w.failed)
		*e = w.first;
	return w.failed ? -1 : 0;
}
