/* SPDX-License-Identifier: Apache-2.0 */
/* Ends and removes sandboxes. */
#pragma once

#include "ops/cay.h"

/*
 * End a sandbox by id and remove everything of it. Also removes a dead sandbox. Kills a warden that
 * does not answer within 10 s.
 */
int op_destroy(struct cay *c, const char *id, struct err *e);
/*
 * Remove the files, control groups and row of a dead sandbox. Waits up to wait_ms for its lock;
 * CONFLICT if another process holds it longer.
 */
int op_remove(struct cay *c, const char *id, int wait_ms, struct err *e);
/* Reconcile one ended sandbox: its files become a snapshot if they were meant to stay. */
int op_reconcile(struct cay *c, const char *id, struct err *e);
