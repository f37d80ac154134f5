/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pools.h"

#include <errno.h>
#include <string.h>

#include "store/db.h"

void pool_row_done(struct pool_row *p)
{
	buf_done(&p->recipe);
}
DEFINE_AUTO(struct pool_row, pool_row_done)

int catalog_put_pool(struct catalog *c, const struct pool_row *p, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c,
		      db_do(c, e,
			    "INSERT INTO pools(template, options, snapshot, recipe, wanted)"
			    " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(template, options) DO UPDATE"
			    " SET snapshot = ?3, recipe = ?4, wanted = ?5, problem = ''",
			    "tttbi", p->template_, p->options, p->snapshot, buf_str(&p->recipe),
			    (int64_t)p->wanted),
		      e);
}

int catalog_del_pools(struct catalog *c, const char *template_, const char *options, int *ret_n,
		      struct err *e)
{
	int r;

	if (db_begin(c, true, e) < 0)
		return -1;
	r = db_do(c, e, "DELETE FROM pools WHERE template = ?1 AND (?2 IS NULL OR options = ?2)",
		  "tt", template_, options);
	*ret_n = r < 0 ? 0 : sqlite3_changes(c->db);
	return db_end(c, r, e);
}

static int read_row(struct catalog *c, sqlite3_stmt *q, struct pool_row *ret, struct err *e)
{
	int r = db_step(c, q, e);

	if (r <= 0)
		return r;
	db_text(q, 0, ret->template_, sizeof ret->template_);
	db_text(q, 1, ret->options, sizeof ret->options);
	db_text(q, 2, ret->snapshot, sizeof ret->snapshot);
	ret->wanted = (uint32_t)sqlite3_column_int64(q, 4);
	ret->claimed = (uint64_t)sqlite3_column_int64(q, 5);
	db_text(q, 6, ret->key, sizeof ret->key);
	db_text(q, 7, ret->problem, sizeof ret->problem);
	buf_clear(&ret->recipe);
	if (buf_add(&ret->recipe, sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3)) <
	    0)
		return err_sys(e, ENOMEM, "read the pools");
	return 1;
}

/* Read one row at a time, each after the last by name, so that no read is open while fn runs. */
int catalog_each_pool(struct catalog *c, int (*fn)(void *ctx, const struct pool_row *p), void *ctx,
		      struct err *e)
{
	auto_done(pool_row_done) struct pool_row at = POOL_ROW_INIT;
	int r, stop = 0;

	do {
		sqlite3_stmt *q = NULL;

		if (db_query(
			    c, &q, e,
			    "SELECT template, options, snapshot, recipe, wanted, claimed, key, problem"
			    " FROM pools WHERE (template, options) > (?1, ?2)"
			    " ORDER BY template, options LIMIT 1",
			    "tt", at.template_, at.options) < 0)
			return -1;
		r = read_row(c, q, &at, e);
		db_finalize(q);
		stop = r > 0 ? fn(ctx, &at) : 1;
	} while (!stop);
	return r < 0 ? -1 : 0;
}

int catalog_note_pool(struct catalog *c, const struct pool_row *p, struct err *e)
{
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c,
		      db_do(c, e,
			    "UPDATE pools SET key = ?3, claimed = ?4, problem = ?5"
			    " WHERE template = ?1 AND options = ?2",
			    "tttit", p->template_, p->options, p->key, (int64_t)p->claimed,
			    p->problem),
		      e);
}

static int hold(struct catalog *c, const char *id, char (*layers)[ID_SIZE], size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (db_do(c, e,
			  "INSERT INTO uses(sandbox, layer) SELECT ?1, id FROM layers WHERE id = ?2",
			  "tt", id, layers[i]) < 0)
			return -1;
		if (!sqlite3_changes(c->db))
			return err_set(e, ERR_CONFLICT, "layer '%s' was removed meanwhile",
				       layers[i]);
	}
	return 0;
}

int catalog_hold_layers(struct catalog *c, const char *id, char (*layers)[ID_SIZE], size_t n,
			struct err *e)
{
	if (n == 0)
		return 0;
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c, hold(c, id, layers, n, e), e);
}
