/* SPDX-License-Identifier: Apache-2.0 */
#include "store/layer_rows.h"

#include "store/db.h"
#include "store/snapshots.h"

int catalog_fork_holds(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT id FROM snapshots WHERE kind = ?1", "i",
		     (int64_t)SNAPSHOT_FORK) < 0)
		return -1;
	return db_id_list(c, q, ret, ret_n, e);
}

/* Repeat one level further down, because a row may have been the last reference to another. */
static int delete_rows(struct catalog *c, struct err *e)
{
	static const char sql[] =
		"DELETE FROM layers WHERE NOT EXISTS"
		" (SELECT 1 FROM layers l WHERE l.parent = layers.id) AND NOT EXISTS"
		" (SELECT 1 FROM sandboxes b WHERE b.top = layers.id) AND NOT EXISTS"
		" (SELECT 1 FROM snapshots s WHERE s.top = layers.id) AND NOT EXISTS"
		" (SELECT 1 FROM uses u WHERE u.layer = layers.id) AND NOT EXISTS"
		" (SELECT 1 FROM operations o WHERE o.layer = layers.id)";

	if (db_do(c, e,
		  "DELETE FROM operations WHERE NOT EXISTS"
		  " (SELECT 1 FROM sandboxes b WHERE b.id = operations.sandbox)",
		  "") < 0)
		return -1;
	do {
		if (db_do(c, e, sql, "") < 0)
			return -1;
	} while (sqlite3_changes(c->db) > 0);
	return 0;
}

int catalog_drop_layers(struct catalog *c, struct err *e)
{
	return db_begin(c, false, e) < 0 ? -1 : db_end(c, delete_rows(c, e), e);
}

int catalog_knows_layer(struct catalog *c, const char *id, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT 1 FROM layers WHERE id = ?1 UNION ALL"
		     " SELECT 1 FROM operations WHERE layer = ?1 UNION ALL"
		     " SELECT 1 FROM snapshots WHERE top = ?1",
		     "t", id) < 0)
		return -1;
	return db_step(c, q, e);
}
