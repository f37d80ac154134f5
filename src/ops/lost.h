/* SPDX-License-Identifier: Apache-2.0 */
/* Recover a dead sandbox: its unfinished operation and its files. */
#pragma once

#include "store/catalog.h"

/*
 * The sandbox is dead and its lock is held. An unfinished operation is completed if the warden had
 * carried it out, else undone. Then the sandbox's files become a snapshot of kind SNAPSHOT_LOST,
 * once. Can be retried after any failure.
 */
int lost_keep(struct catalog *c, const struct state *s, const char *id, struct err *e);
