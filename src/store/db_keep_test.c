/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_keep.h"

#include "t.h"

static const char insert[] = "INSERT INTO t VALUES(?1)", count[] = "SELECT count(*) FROM t";

static sqlite3 *fresh(void)
{
	sqlite3 *db = NULL;

	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "CREATE TABLE t(a TEXT UNIQUE)", NULL, NULL, NULL) == SQLITE_OK);
	return db;
}

static sqlite3_stmt *take(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q = NULL;

	CHECK(db_compile(db, sql, &q) == SQLITE_OK && q);
	return q;
}

static int how_many(sqlite3 *db)
{
	sqlite3_stmt *q = take(db, count);
	int n;

	CHECK(sqlite3_step(q) == SQLITE_ROW);
	n = sqlite3_column_int(q, 0);
	db_keep(q);
	return n;
}

static void close_all(sqlite3 *db)
{
	db_keep_none(db);
	CHECK(sqlite3_close(db) == SQLITE_OK);
}

static void a_returned_statement_is_reused_reset(void)
{
	sqlite3 *db = fresh();
	sqlite3_stmt *q = take(db, insert), *again;

	CHECK(sqlite3_bind_text(q, 1, "x", -1, SQLITE_STATIC) == SQLITE_OK);
	CHECK(sqlite3_step(q) == SQLITE_DONE);
	db_keep(q);
	again = take(db, insert);
	CHECK(again == q);
	/* NULL: x is no longer bound. */
	CHECK(sqlite3_step(again) == SQLITE_DONE);
	db_keep(again);
	CHECK(how_many(db) == 2);
	close_all(db);
}

static void a_statement_in_use_is_not_shared(void)
{
	sqlite3 *db = fresh();
	sqlite3_stmt *a = take(db, count), *b = take(db, count);

	CHECK(a != b);
	CHECK(sqlite3_step(a) == SQLITE_ROW && sqlite3_step(b) == SQLITE_ROW);
	db_keep(a);
	CHECK(sqlite3_column_int(b, 0) == 0);
	db_keep(b);
	close_all(db);
}

static void after_a_failure_it_serves_again(void)
{
	sqlite3 *db = fresh();

	for (int i = 0; i < 2; i++) {
		sqlite3_stmt *q = take(db, insert);

		CHECK(sqlite3_bind_text(q, 1, "x", -1, SQLITE_STATIC) == SQLITE_OK);
		CHECK(sqlite3_step(q) == (i ? SQLITE_CONSTRAINT : SQLITE_DONE));
		db_keep(q);
	}
	CHECK(how_many(db) == 1);
	CHECK(sqlite3_exec(db, "ALTER TABLE t ADD COLUMN b DEFAULT 1", NULL, NULL, NULL) == 0);
	CHECK(how_many(db) == 1);
	close_all(db);
}

static void databases_have_their_own(void)
{
	sqlite3 *a = fresh(), *b = fresh();
	sqlite3_stmt *q = take(a, insert);

	db_keep(q);
	db_keep(take(b, insert));
	CHECK(take(b, insert) != q);
	close_all(a);
	close_all(b);
}

static void more_than_can_be_kept_are_compiled_each_time(void)
{
	sqlite3 *db = fresh();
	sqlite3_stmt *all[100];

	for (int i = 0; i < 100; i++)
		all[i] = take(db, count);
	for (int i = 0; i < 100; i++) {
		CHECK(sqlite3_step(all[i]) == SQLITE_ROW);
		db_keep(all[i]);
	}
	db_keep(NULL);
	close_all(db);
}

static void what_is_wrong_is_said(void)
{
	sqlite3 *db = fresh();
	sqlite3_stmt *q = NULL;

	CHECK(db_compile(db, "SELECT nothing FROM nowhere", &q) == SQLITE_ERROR && !q);
	close_all(db);
}

T_MAIN(T(a_returned_statement_is_reused_reset), T(a_statement_in_use_is_not_shared),
       T(after_a_failure_it_serves_again), T(databases_have_their_own),
       T(more_than_can_be_kept_are_compiled_each_time), T(what_is_wrong_is_said))
