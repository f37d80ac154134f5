/* SPDX-License-Identifier: Apache-2.0 */
#include "store/dead.h"

#include "store/db.h"
#include "store/snapshots.h"

int catalog_get_sandbox(struct catalog *c, const char *id, struct sandbox_row *ret, struct err *e)
{
	return db_sandbox(c, "id = ?1", id, ret, e);
}

int catalog_has_sandbox(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT 1 FROM sandboxes WHERE id = ?1", "t", id) < 0)
		return -1;
	return db_step(c, q, e);
}

int catalog_ids(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e)
{
	return db_ids(c, ret, ret_n, e);
}

int catalog_unlisted_pins(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT DISTINCT sandbox FROM uses WHERE NOT EXISTS"
		     " (SELECT 1 FROM sandboxes WHERE id = uses.sandbox)",
		     "") < 0)
		return -1;
	return db_id_list(c, q, ret, ret_n, e);
}

int catalog_is_open(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT 1 FROM sandboxes WHERE id = ?1 AND (state <> 'lost'"
		     /* Started by a process that did not know yet that it is dead. */
		     " OR EXISTS (SELECT 1 FROM operations WHERE sandbox = ?1))",
		     "t", id) < 0)
		return -1;
	return db_step(c, q, e);
}

int catalog_lose(struct catalog *c, const char *id, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	if (db_lose_calls(c, id, e) < 0)
		return db_end(c, -1, e);
	return db_end(c, db_do(c, e, "UPDATE sandboxes SET state = 'lost' WHERE id = ?1", "t", id),
		      e);
}

int catalog_wants_lost(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT 1 FROM recipes WHERE id = ?1 AND NOT EXISTS"
		     " (SELECT 1 FROM snapshots WHERE sandbox = ?1 AND kind = ?2)",
		     "ti", id, (int64_t)SNAPSHOT_LOST) < 0)
		return -1;
	return db_step(c, q, e);
}
