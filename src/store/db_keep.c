/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_keep.h"

#include <stdbool.h>
#include <string.h>

enum { MOST = 48 }; /* more than any command uses; further ones are compiled each time */

static struct {
	sqlite3_stmt *q; /* NULL: free */
	bool taken;
} kept[MOST];

int db_compile(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
	int room = -1, rc;

	for (int i = 0; i < MOST; i++) {
		if (!kept[i].q) {
			room = i;
		} else if (!kept[i].taken && sqlite3_db_handle(kept[i].q) == db &&
			   strcmp(sqlite3_sql(kept[i].q), sql) == 0) {
			kept[i].taken = true;
			*ret = kept[i].q;
			return SQLITE_OK;
		}
	}
	rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	if (rc == SQLITE_OK && room >= 0) {
		kept[room].q = *ret;
		kept[room].taken = true;
	}
	return rc;
}

void db_keep(sqlite3_stmt *q)
{
	for (int i = 0; i < MOST; i++) {
		if (!q || kept[i].q != q)
			continue;
		(void)sqlite3_reset(q); /* returns the result of the last step again */
		(void)sqlite3_clear_bindings(q);
		kept[i].taken = false;
		return;
	}
	(void)sqlite3_finalize(q);
}

void db_keep_none(sqlite3 *db)
{
	for (int i = 0; i < MOST; i++) {
		if (!kept[i].q || sqlite3_db_handle(kept[i].q) != db)
			continue;
		(void)sqlite3_finalize(kept[i].q);
		kept[i].q = NULL;
		kept[i].taken = false;
	}
}
