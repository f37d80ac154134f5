/* SPDX-License-Identifier: Apache-2.0 */
/* The end of sandboxes. */
#pragma once

#include "ops/cay.h"

/*
 * End a sandbox by its id and remove all that it was, also what is left of a dead one. A warden
 * that does not answer within 10 s is killed.
 */
int op_destroy(struct cay *c, const char *id, struct err *e);
/*
 * Remove what is left of a dead sandbox: files, control groups, row. Waits for its lock up to
 * wait_ms; CONFLICT where somebody holds it longer.
 */
int op_remove(struct cay *c, const char *id, int wait_ms, struct err *e);
/* Put in order what a sandbox that ended has left: what was meant to stay becomes a snapshot. */
int op_reconcile(struct cay *c, const char *id, struct err *e);
