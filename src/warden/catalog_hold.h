/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever opens the catalog while nobody else has it open must first read its whole log, to make
 * an index of it in shared memory: 0.15 ms of every command. By the lock that SQLite's file format
 * calls the dead man's switch (byte 128 of catalog.db-shm) it knows that somebody has. A warden
 * that is in the catalog holds that lock, shared, as an idle user would: so the index stays. It
 * never reads or writes the catalog, and what is in the index is checked by whoever uses it.
 */
#pragma once

#include "warden/warden.h"

/* Where whoever registered the sandbox still has the catalog open, or had it since the machine
 * started. A failure costs time only. */
void catalog_hold(struct warden *w);
