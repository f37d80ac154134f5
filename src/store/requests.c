/* SPDX-License-Identifier: Apache-2.0 */
#include "store/requests.h"

#include <string.h>

#include "base/clock.h"
#include "store/db.h"

static int is_known(struct catalog *c, const struct sandbox_row *row, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "SELECT 1 FROM requests WHERE owner = ?1 AND key = ?2 AND n = ?3",
		     "tti", row->owner, row->request->key, (int64_t)row->request->n) < 0)
		return -1;
	return db_step(c, q, e);
}

int catalog_add_request(struct catalog *c, const struct sandbox_row *row, struct err *e)
{
	const struct request_key *k = row->request;
	uint64_t day = REQUEST_HOURS * 3600ull * NS_PER_S, now = clock_real_ns();
	int r;

	if (db_do(c, e, "DELETE FROM requests WHERE created_ns < ?1", "i", (int64_t)(now - day)) <
	    0)
		return -1;
	r = is_known(c, row, e);
	if (r > 0) {
		(void)err_set(e, ERR_CONFLICT, "another request with this key is being done");
		return err_code(e, "idempotency.taken", NULL);
	}
	return r < 0 ? -1
		     : db_do(c, e,
			     "INSERT INTO requests(owner, key, n, hash, sandbox, created_ns)"
			     " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
			     "ttibti", row->owner, k->key, (int64_t)k->n,
			     (struct str){ (const char *)k->hash, sizeof k->hash }, row->id,
			     (int64_t)now);
}

int catalog_find_request(struct catalog *c, const char *owner, const char *key,
			 char (*ids)[ID_SIZE], int most, uint8_t hash[SHA256_SIZE], struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int n = 0, r = 0;

	if (db_query(c, &q, e,
		     "SELECT sandbox, hash FROM requests WHERE owner = ?1 AND key = ?2 ORDER BY n",
		     "tt", owner, key) < 0)
		return -1;
	while (n < most && (r = db_step(c, q, e)) > 0) {
		(void)str_copy(ids[n++], ID_SIZE, str_of((const char *)sqlite3_column_text(q, 0)));
		if (sqlite3_column_bytes(q, 1) == SHA256_SIZE)
			memcpy(hash, sqlite3_column_blob(q, 1), SHA256_SIZE);
	}
	return r < 0 ? -1 : n;
}
