/* SPDX-License-Identifier: Apache-2.0 */
#include "store/keys.h"

#include <string.h>

#include "base/clock.h"
#include "store/db.h"

#define KEY_COLUMNS "SELECT id, name, shown, digest, created_ns FROM keys "

static void read_key(sqlite3_stmt *q, struct key_row *ret)
{
	const void *digest = sqlite3_column_blob(q, 3);

	*ret = (struct key_row){ .created_ns = (uint64_t)sqlite3_column_int64(q, 4) };
	db_text(q, 0, ret->id, sizeof ret->id);
	db_text(q, 1, ret->name, sizeof ret->name);
	db_text(q, 2, ret->shown, sizeof ret->shown);
	/* A damaged row matches no key. */
	if (digest && sqlite3_column_bytes(q, 3) == SHA256_SIZE)
		memcpy(ret->digest, digest, SHA256_SIZE);
}

/* 1: found, 0: none, -1. */
static int find_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, KEY_COLUMNS "WHERE id = ?1 OR name = ?1 ORDER BY name = ?1 DESC",
		     "t", ref) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r > 0)
		read_key(q, ret);
	return r;
}

static int check_room(struct catalog *c, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT count(*) FROM keys", "") < 0 || db_step(c, q, e) < 0)
		return -1;
	if (sqlite3_column_int(q, 0) < KEYS_MOST)
		return 0;
	return err_set(e, ERR_LIMIT, "there are %d keys already", KEYS_MOST);
}

static int insert_key(struct catalog *c, const struct key_row *row, struct err *e)
{
	struct key_row other;
	int r = find_key(c, row->name, &other, e);

	if (r > 0) {
		(void)err_set(e, ERR_CONFLICT, "there is a key '%s' already", row->name);
		return err_code(e, "key.exists", row->name);
	}
	if (r < 0 || check_room(c, e) < 0)
		return -1;
	return db_do(c, e,
		     "INSERT INTO keys(id, name, shown, digest, created_ns)"
		     " VALUES(?1, ?2, ?3, ?4, ?5)",
		     "tttbi", row->id, row->name, row->shown,
		     (struct str){ (const char *)row->digest, sizeof row->digest },
		     (int64_t)row->created_ns);
}

int catalog_add_key(struct catalog *c, struct key_row *row, struct err *e)
{
	row->created_ns = clock_real_ns();
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, insert_key(c, row, e), e);
}

static int delete_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e)
{
	int r = find_key(c, ref, ret, e);

	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, "there is no key '%.64s'", ref);
	return r < 0 ? -1 : db_do(c, e, "DELETE FROM keys WHERE id = ?1", "t", ret->id);
}

int catalog_del_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, delete_key(c, ref, ret, e), e);
}

int catalog_each_key(struct catalog *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		     struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct key_row row;
	int r;

	if (db_query(c, &q, e, KEY_COLUMNS "ORDER BY created_ns, id", "") < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0) {
		read_key(q, &row);
		if (fn(ctx, &row) != 0)
			return 0;
	}
	return r;
}
