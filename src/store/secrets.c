/* SPDX-License-Identifier: Apache-2.0 */
#include "store/secrets.h"

#include "base/clock.h"
#include "store/db.h"

/* 1: there is one, 0: none, -1. */
static int has_secret(struct catalog *c, const char *owner, const char *ref, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT 1 FROM secrets WHERE owner = ?1 AND (id = ?2 OR name = ?2)",
		     "tt", owner, ref) < 0)
		return -1;
	return db_step(c, q, e);
}

static int must_have(struct catalog *c, const char *owner, const char *ref, struct err *e)
{
	int r = has_secret(c, owner, ref, e);

	return r == 0  ? err_set(e, ERR_NOT_FOUND, "secret '%.128s' not found", ref)
	       : r < 0 ? -1
		       : 0;
}

static int check_room(struct catalog *c, const char *owner, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT count(*) FROM secrets WHERE owner = ?1", "t", owner) < 0 ||
	    db_step(c, q, e) < 0)
		return -1;
	if (sqlite3_column_int(q, 0) < SECRETS_MOST)
		return 0;
	return err_set(e, ERR_LIMIT, "there are %d secrets already", SECRETS_MOST);
}

static int insert(struct catalog *c, const char *owner, const struct secret_row *row,
		  const char *value, struct err *e)
{
	int r = has_secret(c, owner, row->name, e);

	if (r > 0)
		return err_set(e, ERR_CONFLICT, "there is a secret '%s' already", row->name);
	if (r < 0 || check_room(c, owner, e) < 0)
		return -1;
	return db_do(c, e,
		     "INSERT INTO secrets(id, owner, name, value, metadata, version, created_ns,"
		     " updated_ns) VALUES(?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)",
		     "tttbti", row->id, owner, row->name, str_of(value), row->metadata,
		     (int64_t)row->created_ns);
}

int catalog_add_secret(struct catalog *c, const char *owner, struct secret_row *row,
		       const char *value, struct err *e)
{
	row->version = 1;
	row->created_ns = row->updated_ns = clock_real_ns();
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, insert(c, owner, row, value, e), e);
}

static int update(struct catalog *c, const char *owner, const char *ref, const char *value,
		  const char *metadata, struct err *e)
{
	if (must_have(c, owner, ref, e) < 0)
		return -1;
	return db_do(c, e,
		     "UPDATE secrets SET value = ?3, version = version + 1, updated_ns = ?4,"
		     " metadata = CASE ?5 WHEN '' THEN metadata ELSE ?5 END"
		     " WHERE owner = ?1 AND (id = ?2 OR name = ?2)",
		     "ttbit", owner, ref, str_of(value), (int64_t)clock_real_ns(),
		     metadata ? metadata : "");
}

int catalog_set_secret(struct catalog *c, const char *owner, const char *ref, const char *value,
		       const char *metadata, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, update(c, owner, ref, value, metadata, e), e);
}

static int delete_one(struct catalog *c, const char *owner, const char *ref, struct err *e)
{
	if (must_have(c, owner, ref, e) < 0)
		return -1;
	return db_do(c, e, "DELETE FROM secrets WHERE owner = ?1 AND (id = ?2 OR name = ?2)", "tt",
		     owner, ref);
}

int catalog_del_secret(struct catalog *c, const char *owner, const char *ref, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, delete_one(c, owner, ref, e), e);
}

int catalog_each_secret(struct catalog *c, const char *owner, const char *ref, uint64_t after_ns,
			int (*fn)(void *ctx, const struct secret_row *row), void *ctx,
			struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e,
		     "SELECT id, name, version, created_ns, updated_ns, metadata FROM secrets"
		     " WHERE owner = ?1 AND (?2 = '' OR id = ?2 OR name = ?2) AND created_ns > ?3"
		     " ORDER BY created_ns, id",
		     "tti", owner, ref ? ref : "", (int64_t)after_ns) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0) {
		struct secret_row row = { .version = (uint64_t)sqlite3_column_int64(q, 2),
					  .created_ns = (uint64_t)sqlite3_column_int64(q, 3),
					  .updated_ns = (uint64_t)sqlite3_column_int64(q, 4),
					  .metadata = (const char *)sqlite3_column_text(q, 5) };

		db_text(q, 0, row.id, sizeof row.id);
		db_text(q, 1, row.name, sizeof row.name);
		if (fn(ctx, &row) != 0)
			return 0;
	}
	return r;
}
