/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas of keys: sums over the rows of an owner, in the transaction that adds a sandbox. So they
 * hold for all processes, and no restart forgets them. A sandbox that ended by itself may still
 * have a row; its lock is free, and it does not count.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "store/db.h"
#include "store/keys.h"

#define SERVER_LIMITS "key_limits"

static int damaged(const char *whose, struct err *e)
{
	return err_set(e, ERR_FAILED, "the catalog has damaged limits of %s", whose);
}

int catalog_set_server_limits(struct catalog *c, const struct key_limits *l, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(1024);

	if (key_limits_put(l, &text) < 0)
		return err_sys(e, ENOMEM, "write the limits of the server");
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c,
		      db_do(c, e, "INSERT OR REPLACE INTO settings(name, value) VALUES(?1, ?2)",
			    "tt", SERVER_LIMITS, text.len ? text.data : ""),
		      e);
}

int catalog_server_limits(struct catalog *c, struct key_limits *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct key_limits said = { 0 };
	char text[1024] = "";
	int r;

	if (db_query(c, &q, e, "SELECT value FROM settings WHERE name = ?1", "t", SERVER_LIMITS) <
	    0)
		return -1;
	r = db_step(c, q, e);
	if (r < 0)
		return -1;
	if (r > 0)
		db_text(q, 0, text, sizeof text);
	if (key_limits_read(str_of(text), &said) < 0)
		return damaged("the server", e);
	key_limits_default(ret);
	key_limits_merge(ret, &said);
	return 0;
}

/* 1: there is such a key. 0: none. -1. */
static int owner_limits(struct catalog *c, const char *owner, struct key_limits *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct key_limits said;
	char text[1024];
	int r;

	if (catalog_server_limits(c, ret, e) < 0 ||
	    db_query(c, &q, e, "SELECT limits FROM keys WHERE id = ?1", "t", owner) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	db_text(q, 0, text, sizeof text);
	if (key_limits_read(str_of(text), &said) < 0)
		return damaged("a key", e);
	key_limits_merge(ret, &said);
	return 1;
}

int catalog_owner_limits(struct catalog *c, const char *owner, struct key_limits *ret,
			 struct err *e)
{
	if (!owner || !owner[0])
		return catalog_server_limits(c, ret, e);
	return owner_limits(c, owner, ret, e) < 0 ? -1 : 0;
}

/* ---- sums ---- */

static uint64_t number_at(const json_t *limits, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(limits, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* What a sandbox with these options takes. */
static void use_of(const char *spec, struct key_use *ret)
{
	json_t *options = spec ? json_loads(spec, 0, NULL) : NULL;
	const json_t *limits = json_object_get(options, "limits");

	*ret = (struct key_use){ .sandboxes = 1,
				 .memory = number_at(limits, "memory"),
				 .cpu_milli = number_at(limits, "cpu_milli"),
				 .pids = number_at(limits, "pids"),
				 .disk = number_at(limits, "disk") };
	json_decref(options);
}

static void add_use(struct key_use *sum, uint64_t memory, uint64_t cpu_milli)
{
	sum->sandboxes++;
	if (__builtin_add_overflow(sum->memory, memory, &sum->memory))
		sum->memory = UINT64_MAX;
	if (__builtin_add_overflow(sum->cpu_milli, cpu_milli, &sum->cpu_milli))
		sum->cpu_milli = UINT64_MAX;
}

static int sum_rows(struct catalog *c, const char *owner, bool alive, struct key_use *ret,
		    struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct key_use sum = { 0 };
	char id[ID_SIZE];
	int r;

	if (db_query(c, &q, e,
		     "SELECT id, memory, cpu_milli FROM sandboxes"
		     " WHERE owner = ?1 AND state <> 'lost'",
		     "t", owner) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0) {
		db_text(q, 0, id, sizeof id);
		if (!alive || state_lock_is_held(c->state_fd, id))
			add_use(&sum, (uint64_t)sqlite3_column_int64(q, 1),
				(uint64_t)sqlite3_column_int64(q, 2));
	}
	*ret = sum;
	return r;
}

int catalog_owner_use(struct catalog *c, const char *owner, struct key_use *ret, struct err *e)
{
	return sum_rows(c, owner, true, ret, e);
}

int catalog_admit_row(struct catalog *c, const struct sandbox_row *row, struct key_use *ret,
		      struct err *e)
{
	*ret = (struct key_use){ 0 };
	if (!row->owner[0])
		return 0;
	use_of(row->spec, ret);
	return catalog_admit(c, row->owner, ret, e);
}

int catalog_admit(struct catalog *c, const char *owner, const struct key_use *more, struct err *e)
{
	struct key_limits l;
	struct key_use now;
	struct err ignored = { 0 };
	int r;

	/* The host's user may go on with the sandboxes of a key that was revoked. */
	r = owner_limits(c, owner, &l, e);
	if (r <= 0)
		return r;
	/* Rows of the dead cost a look at each lock, so that comes only if it can matter. */
	if (sum_rows(c, owner, false, &now, e) < 0)
		return -1;
	if (key_limits_admit(&l, &now, more, &ignored) == 0)
		return 0;
	return sum_rows(c, owner, true, &now, e) < 0 ? -1 : key_limits_admit(&l, &now, more, e);
}
