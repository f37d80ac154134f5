/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's memory in `cay`, which opens the catalog, runs a query and exits. musl's malloc() takes
 * small groups of pages from the kernel and returns them as soon as it can: about sixty system
 * calls per open catalog, a third of the time to open it.
 *
 * Blocks have sizes of powers of two, from chunks that are never returned. A freed block is kept
 * for the next block of its size. SQLite is configured for one thread.
 */
#pragma once

#include <sqlite3.h>

extern const sqlite3_mem_methods db_heap;
