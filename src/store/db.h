/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database under the catalog, for the files that implement catalog.h: statements,
 * transactions, and errors that name the file.
 */
#pragma once

#include <sqlite3.h>

#include "base/cleanup.h"
#include "store/catalog.h"
#include "store/db_keep.h"

struct catalog {
	sqlite3 *db;
	char path[sizeof((struct state *)0)->dir + sizeof "/catalog.db"];
	int sync;	     /* value of the pragma; -1: SQLite's default */
	int state_fd;	     /* borrowed from the state it was opened with */
	bool batch;	     /* an outer transaction is open (catalog_batch_begin) */
	int frames;	     /* in the write-ahead log after the last commit */
	uint64_t busy_until; /* monotonic ns: when to stop waiting for the lock */
};

/* Turn a result code of SQLite into an error. Returns -1. */
int db_fail(struct catalog *c, int rc, struct err *e);

/* Return the statement for reuse. */
static inline void db_finalize(sqlite3_stmt *q)
{
	db_keep(q);
}
DEFINE_AUTO_PTR(sqlite3_stmt, db_finalize)

/*
 * Compile sql and bind the arguments by `kinds`: t const char * (NULL: null), b struct str as
 * bytes, i int64_t (must not be int). Text is borrowed until the statement is reset or finalized.
 */
int db_query(struct catalog *c, sqlite3_stmt **ret, struct err *e, const char *sql,
	     const char *kinds, ...);
/* 1: a row. 0: the end. -1. */
int db_step(struct catalog *c, sqlite3_stmt *q, struct err *e);
/* db_query and one db_step that must give no row. */
int db_do(struct catalog *c, struct err *e, const char *sql, const char *kinds, ...);

/* Begin a write transaction. durable: its commit is on the disk. */
int db_begin(struct catalog *c, bool durable, struct err *e);
/* Commit if r is 0, else roll back. Returns 0 or -1. */
int db_end_named(struct catalog *c, int r, struct err *e, const char *who);
/* With failpoints FUNCTION.commits and FUNCTION.committed, named after the calling function. */
#define db_end(c, r, e) db_end_named(c, r, e, __func__)

/* Copy column i; cut text that does not fit. */
void db_text(sqlite3_stmt *q, int i, char *dst, size_t size);
/* Copy of column i, NULL if it is null; the caller frees it. */
int db_text_dup(sqlite3_stmt *q, int i, char **ret, struct err *e);

/* All rows of a query with ids in column 0; the caller frees *ret. */
int db_id_list(struct catalog *c, sqlite3_stmt *q, char (**ret)[ID_SIZE], size_t *ret_n,
	       struct err *e);
/* The ids of all sandboxes, oldest first; the caller frees *ret. */
int db_ids(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e);
/* 1: found; the caller owns ret. 0: none. -1. where: such as `id = ?1`. */
int db_sandbox(struct catalog *c, const char *where, const char *value, struct sandbox_row *ret,
	       struct err *e);
/* End the calls that were running when their sandbox died. */
int db_lose_calls(struct catalog *c, const char *id, struct err *e);
/* Delete what a sandbox had beside its row: recipe, operation, and snapshots that no user made. */
int db_del_state(struct catalog *c, const char *id, struct err *e);
