/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of SQLite in `cay`, which opens the catalog, asks it something and goes. musl's
 * malloc() takes small groups of pages from the kernel and gives them back as soon as it can:
 * some sixty system calls for one open catalog, a third of what opening it takes.
 *
 * Blocks come in powers of two from pieces that are never given back; what is freed is kept
 * for the next of its size. SQLite is told to be used by one thread.
 */
#pragma once

#include <sqlite3.h>

extern const sqlite3_mem_methods db_heap;
