/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps compiled statements for reuse. Compiling one takes as long as running it, and a command
 * runs the same statement two or three times.
 */
#pragma once

#include <sqlite3.h>

/* Returns an SQLite result code. Return *ret with db_keep(), which unbinds and resets it. */
int db_compile(sqlite3 *db, const char *sql, sqlite3_stmt **ret);
/* NULL is allowed. */
void db_keep(sqlite3_stmt *q);
/* Call before closing a database. */
void db_keep_none(sqlite3 *db);
