/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled statements, kept for the next time: to compile one takes as long as to run it, and a
 * command asks the same two or three times.
 */
#pragma once

#include <sqlite3.h>

/* A result code of SQLite. *ret is given back with db_keep(), unbound and at its beginning. */
int db_compile(sqlite3 *db, const char *sql, sqlite3_stmt **ret);
/* NULL is nothing. */
void db_keep(sqlite3_stmt *q);
/* Before a database is closed. */
void db_keep_none(sqlite3 *db);
