/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reconcile what dead sandboxes left. A creator takes the lock before it makes anything else of its
 * sandbox, and the warden holds it until the end. So a check without the lock is only a guess. We
 * check again under the lock before we act, and leave the sandbox alone if we cannot get the lock.
 */
#include "ops/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/str.h"
#include "ops/lost.h"
#include "store/dead.h"
#include "store/end_note.h"
#include "store/locks.h"
#include "store/storage.h"

/*
 * A younger lock without anything else may belong to a creator that has not taken it yet. The
 * creator would only have to retry, so a complete check does not wait.
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
	return catalog_lose(w->c, id, e);
}

/* 1, or 0 if there are none. -1 if we cannot tell: they may exist. */
static int has_files(const struct state *s, const char *id, struct err *e)
{
	auto_close int fd = FD_NONE;

	if (state_sandbox_open(s, id, &fd, e) == 0)
		return 1;
	return e->kind == ERR_NOT_FOUND ? 0 : -1;
}

/*
 * The kernel kills init with the warden, and all others with init, but not at once: a process that
 * still writes would write to a sealed layer. So we kill them first; if that takes long, a later
 * reconcile continues.
 *
 * Owns the held lock. If only the row is left, another process is removing the sandbox and will
 * delete the row too. Then we keep nothing but the lock, which we have just made.
 */
static int reconcile_dead(struct sweep *w, const char *id, int lock, struct err *e)
{
	auto_close int held = lock;
	struct sandbox_row row = { 0 };
	int keep = catalog_get_sandbox(w->c, id, &row, e);

	sandbox_row_done(&row);
	if (keep > 0)
		keep = row.ephemeral || strcmp(row.state, "creating") == 0 ? 0
									   : has_files(w->s, id, e);
	if (keep < 0)
		return -1;
	end_note_write(w->s, id);
	if (keep && state_end_processes(id, e) < 0)
		return e->sys == EBUSY ? 0 : -1;
	if (keep)
		return strcmp(row.state, "lost") == 0 ? lost_keep(w->c, w->s, id, e)
						      : lose(w, id, e);
	if (state_remove(w->s, id, TAKE_FD(held), e) < 0)
		return -1;
	/* Last, because the row reserves the uid slot of the files. */
	return catalog_del_sandbox(w->c, id, e) < 0 ? -1 : 1;
}

/* counts: count the removal, because a user would miss it. */
static void reconcile_check(struct sweep *w, const char *id, bool counts)
{
	struct err e;
	int lock = FD_NONE;
	int r = lock_dead(w, id, &lock, &e);

	if (r > 0)
		r = reconcile_dead(w, id, lock, &e);
	note(w, r, &e);
	w->removed += r > 0 && counts;
}

/* Where to start among n entries if only `most` are checked. */
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

/* A ready sandbox whose directory is gone leaves only this. */
static int sweep_uses(struct sweep *w, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;

	if (catalog_unlisted_pins(w->c, &ids, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < how_many(w, n); i++)
		reconcile_check(w, ids[i], false);
	return 0;
}

static int sweep_rows(struct sweep *w, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, start;

	if (catalog_ids(w->c, &ids, &n, e) < 0)
		return -1;
	start = start_of(w, n);
	for (size_t i = 0; i < how_many(w, n); i++) {
		const char *id = ids[(start + i) % n];
		int r = catalog_is_open(w->c, id, e);

		if (r < 0)
			return -1;
		if (r > 0)
			reconcile_check(w, id, true);
	}
	return 0;
}

static bool is_old(const struct state *s, const char *id)
{
	char path[sizeof "locks/" + ID_SIZE];
	struct stat st;

	(void)snprintf(path, sizeof path, "locks/%s", id);
	return fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_mtim.tv_sec + LOCK_MIN_AGE_S < clock_coarse_ns() / NS_PER_S;
}

/* Entries in dir without a row. Locks count only after everything else is gone. */
static int sweep_dir(struct sweep *w, const char *dir, bool is_locks, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, start;
	int failed = state_list_ids(w->s->fd, dir, &ids, &n);

	if (failed < 0)
		return err_sys(e, -failed, "cannot read %s/%s", w->s->dir, dir);
	start = start_of(w, n);
	for (size_t i = 0; i < how_many(w, n); i++) {
		const char *id = ids[(start + i) % n];
		int r = is_locks && w->most > 0 && !is_old(w->s, id)
				? 1
				: catalog_has_sandbox(w->c, id, e);

		if (r < 0)
			return -1;
		if (r == 0)
			reconcile_check(w, id, !is_locks);
	}
	return 0;
}

int reconcile_one(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	struct sweep w = { .c = c, .s = s };

	reconcile_check(&w, id, true);
	if (w.failed)
		*e = w.first;
	return w.failed ? -1 : 0;
}

int reconcile_all(struct catalog *c, const struct state *s, int most, int *ret_removed,
		  struct err *e)
{
	struct sweep w = { .c = c, .s = s, .most = most };
	struct err broken;
	int r = sweep_rows(&w, &broken);

	if (r == 0)
		r = sweep_uses(&w, &broken);
	if (r == 0)
		r = sweep_dir(&w, "sandboxes", false, &broken);
	/*
	 * Subvolumes of sandboxes that left nothing else. Unmounted storage is checked when it is
	 * mounted.
	 */
	if (r == 0 && storage_exists(s))
		r = sweep_dir(&w, "storage", false, &broken);
	if (r == 0)
		r = sweep_dir(&w, "locks", true, &broken);
	note(&w, r, &broken);
	if (ret_removed)
		*ret_removed = w.removed;
	if (w.failed)
		*e = w.first;
	return w.failed ? -1 : 0;
}
