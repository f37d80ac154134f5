/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox that died has left, put right: half-done operations, and its files. */
#pragma once

#include "store/catalog.h"

/*
 * The sandbox is dead and its lock is held. An operation that was under way is completed where the
 * warden had gone through with it, else undone; then what the sandbox had in its files becomes a
 * snapshot of kind SNAPSHOT_LOST, once. It can be tried again after any failure.
 */
int lost_keep(struct catalog *c, const struct state *s, const char *id, struct err *e);
