/* SPDX-License-Identifier: Apache-2.0 */
#include "store/catalog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/db.h"
#include "store/keys.h"
#include "store/locks.h"
#include "store/pools.h"
#include "store/requests.h"
#include "store/snapshots.h"

static const char *const states[] = { "creating", "running", "lost" };

void sandbox_row_done(struct sandbox_row *row)
{
	free(row->spec);
	row->spec = NULL;
}

static int check_row(const struct sandbox_row *row, struct err *e)
{
	if (!state_id_ok(row->id))
		return err_set(e, ERR_INVALID, "'%s' is not a sandbox id", row->id);
	if (row->name[0] && !state_name_ok(row->name)) {
		err_set(e, ERR_INVALID, "'%s' cannot be the name of a sandbox", row->name);
		return err_hint(
			e, "use up to 63 letters, digits, '_', '.', '-', not the last three first");
	}
	return 0;
}

static int check_taken(struct catalog *c, const struct sandbox_row *row, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT id FROM sandboxes WHERE id = ?1 OR name = ?2", "tt", row->id,
		     row->name[0] ? row->name : NULL) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	if (strcmp((const char *)sqlite3_column_text(q, 0), row->id) == 0)
		return err_set(e, ERR_CONFLICT, "sandbox '%s' exists", row->id);
	err_set(e, ERR_CONFLICT, "the name '%s' is taken by sandbox '%s'", row->name,
		(const char *)sqlite3_column_text(q, 0));
	return err_code(e, "sandbox.name_taken", row->name);
}

/* The first gap in the index: the first row without a successor. */
static int lowest_slot(struct catalog *c, int *ret, struct err *e)
{
	static const char sql[] =
		"SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM sandboxes WHERE uid_slot = 0) "
		"UNION ALL SELECT * FROM (SELECT a.uid_slot + 1 FROM sandboxes a"
		" WHERE a.uid_slot IS NOT NULL AND NOT EXISTS"
		"  (SELECT 1 FROM sandboxes b WHERE b.uid_slot = a.uid_slot + 1)"
		" ORDER BY a.uid_slot LIMIT 1) LIMIT 1";
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, sql, "") < 0 || db_step(c, q, e) < 0)
		return -1;
	*ret = sqlite3_column_int(q, 0);
	if (*ret < UID_SLOTS)
		return 0;
	err_set(e, ERR_LIMIT, "all %d uid ranges are taken by sandboxes", UID_SLOTS);
	return err_code(e, "sandbox.too_many", NULL);
}

int catalog_check_slot(struct catalog *c, int slot, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT id FROM sandboxes WHERE uid_slot = ?1", "i", (int64_t)slot) <
	    0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	err_set(e, ERR_CONFLICT, "uid range %d belongs to sandbox '%s'", slot,
		(const char *)sqlite3_column_text(q, 0));
	e->sys = EADDRINUSE;
	return -1;
}

static int choose_slot(struct catalog *c, const struct sandbox_row *row, bool want, int *ret,
		       struct err *e)
{
	*ret = row->uid_slot;
	if (!want)
		*ret = -1;
	else if (*ret >= 0)
		return catalog_check_slot(c, *ret, e);
	else
		return lowest_slot(c, ret, e);
	return 0;
}

/*
 * From now on, processes that free or merge layers see the row. If layers were freed or merged
 * since the warden was given the stack, it must retry.
 */
static int check_stack(struct catalog *c, const struct sandbox_row *row, struct err *e)
{
	auto_free char(*now)[ID_SIZE] = NULL;
	size_t n = 0;

	if (!row->top[0])
		return 0;
	if (catalog_stack(c, row->top, &now, &n, e) < 0)
		return e->sys == ESTALE
			       ? err_set(e, ERR_CONFLICT, "the snapshot was removed meanwhile")
			       : -1;
	for (size_t i = 0; n == row->nlayers && i < n; i++)
		if (strcmp(now[i], row->layers[i]) != 0)
			n = SIZE_MAX;
	/* Its mounted layers are pinned already, whatever replaced them. */
	if (row->held || n == row->nlayers)
		return 0;
	err_set(e, ERR_CONFLICT, "layers were merged meanwhile");
	e->sys = EADDRINUSE;
	return -1;
}

static int insert(struct catalog *c, struct sandbox_row *row, bool want_uid_slot, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct key_use use;
	int slot = -1;

	if (check_taken(c, row, e) < 0 || check_stack(c, row, e) < 0 ||
	    catalog_admit_row(c, row, &use, e) < 0 ||
	    choose_slot(c, row, want_uid_slot, &slot, e) < 0)
		return -1;
	if (db_query(c, &q, e,
		     "INSERT INTO sandboxes(id, name, template, state, spec, ephemeral, created_ns,"
		     " uid_slot, top, owner, memory, cpu_milli)"
		     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, nullif(?8, -1), ?9, ?10,"
		     " nullif(?11, 0), nullif(?12, 0))",
		     "tttttiiittii", row->id, row->name[0] ? row->name : NULL, row->template_,
		     row->state, row->spec, (int64_t)row->ephemeral, (int64_t)row->created_ns,
		     (int64_t)slot, row->top[0] ? row->top : NULL,
		     row->owner[0] ? row->owner : NULL, (int64_t)use.memory,
		     (int64_t)use.cpu_milli) < 0 ||
	    db_step(c, q, e) < 0)
		return -1;
	row->uid_slot = slot;
	if (row->request && catalog_add_request(c, row, e) < 0)
		return -1;
	if (!row->recipe.n)
		return 0;
	return db_do(c, e,
		     "INSERT INTO recipes(id, body, template, spec, owner)"
		     " VALUES(?1, ?2, ?3, ?4, ?5)",
		     "tbttt", row->id, row->recipe, row->template_, row->spec,
		     row->owner[0] ? row->owner : NULL);
}

int catalog_add_sandbox(struct catalog *c, struct sandbox_row *row, bool want_uid_slot,
			struct err *e)
{
	if (check_row(row, e) < 0)
		return -1;
	if (row->created_ns == 0)
		row->created_ns = clock_real_ns();
	(void)str_copy(row->state, sizeof row->state, str_of(states[row->running]));
	if (db_begin(c, !row->ephemeral, e) < 0)
		return -1;
	return db_end(c, insert(c, row, want_uid_slot, e), e);
}

/* 1: yes. 0: no. -ENOENT: no such row. -1: the error is set. */
static int is_ephemeral(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT ephemeral FROM sandboxes WHERE id = ?1", "t", id) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r == 0)
		return -ENOENT;
	return r < 0 ? -1 : sqlite3_column_int(q, 0) != 0;
}

static int no_sandbox(const char *id, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", id);
}

static int update_state(struct catalog *c, const char *id, const char *state, struct err *e)
{
	if (db_do(c, e, "UPDATE sandboxes SET state = ?2 WHERE id = ?1", "tt", id, state) < 0)
		return -1;
	return sqlite3_changes(c->db) ? 0 : no_sandbox(id, e);
}

int catalog_set_state(struct catalog *c, const char *id, const char *state, struct err *e)
{
	size_t i = 0;
	int ephemeral;

	while (i < ARRAY_LEN(states) && strcmp(states[i], state) != 0)
		i++;
	if (i == ARRAY_LEN(states))
		return err_set(e, ERR_INVALID, "'%s' is not a state of a sandbox", state);
	ephemeral = is_ephemeral(c, id, e);
	if (ephemeral < 0)
		return ephemeral == -ENOENT ? no_sandbox(id, e) : -1;
	if (db_begin(c, !ephemeral, e) < 0)
		return -1;
	return db_end(c, update_state(c, id, state, e), e);
}

/* A ready sandbox never had a row but may pin layers (store/pools.h). */
static int let_go(struct catalog *c, const char *id, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT 1 FROM uses WHERE sandbox = ?1", "t", id) < 0)
		return -1;
	r = db_step(c, q, e);
	db_finalize(q);
	if (r <= 0)
		return r;
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c, db_do(c, e, "DELETE FROM uses WHERE sandbox = ?1", "t", id), e);
}

int catalog_del_sandbox(struct catalog *c, const char *id, struct err *e)
{
	int ephemeral = is_ephemeral(c, id, e);
	int r;

	if (ephemeral == -ENOENT)
		return let_go(c, id, e);
	if (ephemeral < 0)
		return -1;
	if (db_begin(c, !ephemeral, e) < 0)
		return -1;
	r = db_do(c, e, "DELETE FROM calls WHERE sandbox = ?1", "t", id);
	if (r == 0)
		r = db_do(c, e, "DELETE FROM requests WHERE sandbox = ?1", "t", id);
	if (r == 0)
		r = db_do(c, e, "DELETE FROM sandboxes WHERE id = ?1", "t", id);
	if (r == 0 && ephemeral)
		r = db_do(c, e, "DELETE FROM uses WHERE sandbox = ?1", "t", id);
	else if (r == 0)
		r = db_del_state(c, id, e);
	return db_end(c, r, e);
}

int db_sandbox(struct catalog *c, const char *where, const char *value, struct sandbox_row *ret,
	       struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct sandbox_row row = { 0 };
	char sql[256];
	int r;

	(void)snprintf(sql, sizeof sql,
		       "SELECT id, name, template, state, spec, ephemeral, ifnull(uid_slot, -1),"
		       " created_ns, top, owner FROM sandboxes WHERE %s",
		       where);
	if (db_query(c, &q, e, sql, "t", value) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	db_text(q, 0, row.id, sizeof row.id);
	db_text(q, 1, row.name, sizeof row.name);
	db_text(q, 2, row.template_, sizeof row.template_);
	db_text(q, 3, row.state, sizeof row.state);
	row.ephemeral = sqlite3_column_int(q, 5) != 0;
	row.uid_slot = sqlite3_column_int(q, 6);
	row.created_ns = (uint64_t)sqlite3_column_int64(q, 7);
	db_text(q, 8, row.top, sizeof row.top);
	db_text(q, 9, row.owner, sizeof row.owner);
	if (db_text_dup(q, 4, &row.spec, e) < 0)
		return -1;
	*ret = row;
	return 1;
}

int db_id_list(struct catalog *c, sqlite3_stmt *q, char (**ret)[ID_SIZE], size_t *ret_n,
	       struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, room = 0;
	int r;

	while ((r = db_step(c, q, e)) > 0) {
		if (n == room) {
			void *more = reallocarray(ids, room + 64, 2 * sizeof *ids);

			if (!more)
				return err_sys(e, ENOMEM, "cannot read the catalog");
			ids = more;
			room = (room + 64) * 2;
		}
		db_text(q, 0, ids[n++], sizeof *ids);
	}
	if (r < 0)
		return -1;
	*ret = TAKE_PTR(ids);
	*ret_n = n;
	return 0;
}

int db_ids(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT id FROM sandboxes ORDER BY created_ns, id", "") < 0)
		return -1;
	return db_id_list(c, q, ret, ret_n, e);
}

/* Running sandboxes without a row, oldest first. */
struct unlisted {
	struct sandbox_row *rows;
	size_t n, given;
};

static void unlisted_done(struct unlisted *u)
{
	for (size_t i = 0; i < u->n; i++)
		sandbox_row_done(&u->rows[i]);
	free(u->rows);
}
DEFINE_AUTO(struct unlisted, unlisted_done)

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int compare_created(const void *a, const void *b)
{
	const struct sandbox_row *x = a, *y = b;

	return x->created_ns < y->created_ns ? -1 : x->created_ns > y->created_ns;
}

/* listed: the ids that have a row. */
static int read_unlisted(struct catalog *c, char (*listed)[ID_SIZE], size_t nlisted,
			 struct unlisted *ret, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL, (*sorted)[ID_SIZE] = NULL;
	size_t n = 0;
	int r = state_list_ids(c->state_fd, "locks", &ids, &n);

	sorted = calloc(nlisted + 1, sizeof *sorted);
	ret->rows = calloc(n + 1, sizeof *ret->rows);
	if (r < 0 || !sorted || !ret->rows)
		return err_sys(e, r < 0 ? -r : ENOMEM, "list the sandboxes");
	if (nlisted)
		memcpy(sorted, listed, nlisted * sizeof *sorted);
	qsort(sorted, nlisted, sizeof *sorted, compare_ids);
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (bsearch(ids[i], sorted, nlisted, sizeof *sorted, compare_ids))
			continue;
		r = lock_record_read(c->state_fd, ids[i], &ret->rows[ret->n]);
		ret->n += r > 0;
	}
	qsort(ret->rows, ret->n, sizeof *ret->rows, compare_created);
	return r < 0 ? err_sys(e, -r, "list the sandboxes") : 0;
}

/* Call fn for those older than `than_ns`. True: fn wants no more. */
static bool give_unlisted(struct unlisted *u, uint64_t than_ns,
			  int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx)
{
	while (u->given < u->n && u->rows[u->given].created_ns < than_ns)
		if (fn(ctx, &u->rows[u->given++]) != 0)
			return true;
	return false;
}

int catalog_each(struct catalog *c, int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx,
		 struct err *e)
{
	auto_done(unlisted_done) struct unlisted u = { 0 };
	auto_free char(*ids)[ID_SIZE] = NULL;
	bool stop = false;
	size_t n = 0;

	if (db_ids(c, &ids, &n, e) < 0 || read_unlisted(c, ids, n, &u, e) < 0)
		return -1;
	for (size_t i = 0; i < n && !stop; i++) {
		struct sandbox_row row = { 0 };
		int r = db_sandbox(c, "id = ?1", ids[i], &row, e);

		if (r < 0)
			return -1;
		if (r == 0)
			continue;
		stop = give_unlisted(&u, row.created_ns, fn, ctx) || fn(ctx, &row) != 0;
		sandbox_row_done(&row);
	}
	if (!stop)
		(void)give_unlisted(&u, UINT64_MAX, fn, ctx);
	return 0;
}

int catalog_note_template(struct catalog *c, const char *name, const char *kind, struct err *e)
{
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c,
		      db_do(c, e,
			    "INSERT INTO templates(name, kind, noted_ns) VALUES(?1, ?2, ?3)"
			    " ON CONFLICT(name) DO UPDATE SET kind = ?2, noted_ns = ?3",
			    "tti", name, kind, (int64_t)clock_real_ns()),
		      e);
}
