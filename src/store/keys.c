/* SPDX-License-Identifier: Apache-2.0 */
#include "store/keys.h"

#include <string.h>

#include "base/clock.h"
#include "store/db.h"

#define KEY_COLUMNS \
	"SELECT id, name, shown, digest, created_ns, ifnull(owner, id), expires_ns, limits" \
	" FROM keys "
enum { LIMITS_TEXT = 1024 };

static void read_key(sqlite3_stmt *q, struct key_row *ret)
{
	const void *digest = sqlite3_column_blob(q, 3);
	char limits[LIMITS_TEXT];

	*ret = (struct key_row){ .created_ns = (uint64_t)sqlite3_column_int64(q, 4),
				 .expires_ns = (uint64_t)sqlite3_column_int64(q, 6) };
	db_text(q, 0, ret->id, sizeof ret->id);
	db_text(q, 1, ret->name, sizeof ret->name);
	db_text(q, 2, ret->shown, sizeof ret->shown);
	db_text(q, 5, ret->owner, sizeof ret->owner);
	db_text(q, 7, limits, sizeof limits);
	ret->damaged = key_limits_read(str_of(limits), &ret->limits) < 0;
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

static int no_key(const char *ref, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "there is no key '%.64s'", ref);
}

static int find_shared(struct catalog *c, struct key_row *row, const char *shares, struct err *e)
{
	struct key_row other;
	int r = shares ? find_key(c, shares, &other, e) : 1;

	if (r == 0)
		return no_key(shares, e);
	(void)str_copy(row->owner, sizeof row->owner, str_of(shares ? other.owner : row->id));
	return r < 0 ? -1 : 0;
}

static int put_limits(const struct key_limits *l, struct buf *out, struct err *e)
{
	int r = key_limits_put(l, out);

	return r < 0 ? err_sys(e, -r, "write the limits of a key") : 0;
}

static int insert_key(struct catalog *c, struct key_row *row, const char *shares, struct err *e)
{
	auto_done(buf_done) struct buf limits = BUF_INIT(LIMITS_TEXT - 1);
	struct key_row other;
	int r = find_key(c, row->name, &other, e);

	if (r > 0) {
		(void)err_set(e, ERR_CONFLICT, "there is a key '%s' already", row->name);
		return err_code(e, "key.exists", row->name);
	}
	if (r < 0 || check_room(c, e) < 0 || find_shared(c, row, shares, e) < 0 ||
	    put_limits(&row->limits, &limits, e) < 0)
		return -1;
	return db_do(
		c, e,
		"INSERT INTO keys(id, name, shown, digest, created_ns, owner, expires_ns, limits)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
		"tttbitit", row->id, row->name, row->shown,
		(struct str){ (const char *)row->digest, sizeof row->digest },
		(int64_t)row->created_ns, row->owner, (int64_t)row->expires_ns,
		limits.len ? limits.data : "");
}

int catalog_add_key(struct catalog *c, struct key_row *row, const char *shares, struct err *e)
{
	row->created_ns = clock_real_ns();
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, insert_key(c, row, shares, e), e);
}

static int delete_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e)
{
	int r = find_key(c, ref, ret, e);

	if (r == 0)
		return no_key(ref, e);
	return r < 0 ? -1
		     : db_do(c, e, "DELETE FROM keys WHERE id = ?1 OR owner = ?1", "t", ret->id);
}

int catalog_del_key(struct catalog *c, const char *ref, struct key_row *ret, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, delete_key(c, ref, ret, e), e);
}

static int update_key(struct catalog *c, const char *ref, const struct key_limits *over,
		      const uint64_t *expires_ns, struct key_row *ret, struct err *e)
{
	auto_done(buf_done) struct buf limits = BUF_INIT(LIMITS_TEXT - 1);
	int r = find_key(c, ref, ret, e);

	if (r == 0)
		return no_key(ref, e);
	if (r < 0)
		return -1;
	if (ret->damaged)
		return err_set(e, ERR_FAILED, "the limits of key '%s' are damaged", ret->name);
	key_limits_merge(&ret->limits, over);
	if (expires_ns)
		ret->expires_ns = *expires_ns;
	if (put_limits(&ret->limits, &limits, e) < 0)
		return -1;
	return db_do(c, e, "UPDATE keys SET limits = ?2, expires_ns = ?3 WHERE id = ?1", "tti",
		     ret->id, limits.len ? limits.data : "", (int64_t)ret->expires_ns);
}

int catalog_set_key(struct catalog *c, const char *ref, const struct key_limits *over,
		    const uint64_t *expires_ns, struct key_row *ret, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, update_key(c, ref, over, expires_ns, ret, e), e);
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
