/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flatten_rows.h"

#include "base/clock.h"
#include "store/db.h"

int catalog_levels(struct catalog *c, const char *top, char (*ids)[ID_SIZE], int *levels, int max,
		   int *ret_n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r, n = 0;

	if (db_query(c, &q, e,
		     "WITH RECURSIVE s(id, parent, level, n) AS ("
		     " SELECT id, parent, level, 0 FROM layers WHERE id = ?1 UNION ALL"
		     " SELECT l.id, l.parent, l.level, n + 1 FROM s JOIN layers l"
		     " ON l.id = s.parent) SELECT id, level FROM s ORDER BY n",
		     "t", top) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0 && n < max) {
		db_text(q, 0, ids[n], ID_SIZE);
		levels[n++] = sqlite3_column_int(q, 1);
	}
	*ret_n = n;
	return r < 0 ? -1 : 0;
}

/* A layer and all layers above it. */
#define ABOVE \
	"WITH RECURSIVE d(id) AS (SELECT ?1 UNION ALL" \
	" SELECT l.id FROM d JOIN layers l ON l.parent = d.id) "

/* 1: a switch in progress has been given the current layers. */
static int is_switching(struct catalog *c, const char *top, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     ABOVE "SELECT 1 FROM operations o JOIN sandboxes b ON b.id = o.sandbox"
			   " WHERE b.top IN (SELECT id FROM d) OR o.layer IN (SELECT id FROM d)",
		     "t", top) < 0)
		return -1;
	return db_step(c, q, e);
}

static int pin(struct catalog *c, char (*old)[ID_SIZE], int n, const char *sandbox, struct err *e)
{
	for (int i = 0; i < n; i++)
		if (db_do(c, e, "INSERT OR IGNORE INTO uses(sandbox, layer) VALUES(?1, ?2)", "tt",
			  sandbox, old[i]) < 0)
			return -1;
	return 0;
}

/* Sandboxes keep their mounted layers until their next switch. */
static int pin_all(struct catalog *c, char (*old)[ID_SIZE], int n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t nids = 0;
	int r;

	if (db_query(c, &q, e, ABOVE "SELECT b.id FROM sandboxes b JOIN d ON b.top = d.id", "t",
		     old[0]) < 0)
		return -1;
	r = db_id_list(c, q, &ids, &nids, e);
	for (size_t i = 0; i < nids && r == 0; i++)
		r = pin(c, old, n, ids[i], e);
	return r;
}

static int rewire(struct catalog *c, char (*old)[ID_SIZE], int n, const char *below, const char *id,
		  int level, struct err *e)
{
	int busy = is_switching(c, old[0], e);

	if (busy)
		return busy < 0 ? -1 : 0;
	if (pin_all(c, old, n, e) < 0 ||
	    db_do(c, e, "UPDATE layers SET parent = ?2 WHERE parent = ?1", "tt", old[0], id) < 0 ||
	    db_do(c, e, "UPDATE sandboxes SET top = ?2 WHERE top = ?1", "tt", old[0], id) < 0 ||
	    db_do(c, e, "UPDATE snapshots SET top = ?2 WHERE top = ?1", "tt", old[0], id) < 0 ||
	    db_do(c, e, "INSERT INTO layers(id, parent, level, created_ns) VALUES(?1, ?2, ?3, ?4)",
		  "ttii", id, below, (int64_t)level, (int64_t)clock_real_ns()) < 0)
		return -1;
	return 1;
}

int catalog_replace_layers(struct catalog *c, char (*old)[ID_SIZE], int n, const char *below,
			   const char *id, int level, struct err *e)
{
	int r;

	if (db_begin(c, false, e) < 0)
		return -1;
	r = rewire(c, old, n, below, id, level, e);
	if (db_end(c, r > 0 ? 0 : -1, e) < 0 && r != 0)
		return -1;
	return r;
}

int catalog_raise_layer(struct catalog *c, const char *id, struct err *e)
{
	int r;

	if (db_begin(c, false, e) < 0)
		return -1;
	r = db_do(c, e, "UPDATE layers SET level = level + 1 WHERE id = ?1", "t", id);
	return db_end(c, r, e);
}

int catalog_tops(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	/* Alternating top and sandbox. */
	if (db_query(
		    c, &q, e,
		    "WITH t(top, box) AS (SELECT top, id FROM sandboxes WHERE top IS NOT NULL"
		    " UNION SELECT top, sandbox FROM snapshots WHERE top IS NOT NULL AND NOT EXISTS"
		    " (SELECT 1 FROM layers WHERE parent = snapshots.top))"
		    " SELECT x FROM (SELECT top AS x, top AS o, box AS p, 0 AS k FROM t UNION ALL"
		    "  SELECT box, top, box, 1 FROM t) ORDER BY o, p, k",
		    "") < 0)
		return -1;
	return db_id_list(c, q, ret, ret_n, e);
}
