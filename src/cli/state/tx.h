/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction around one command. */
#pragma once

#include "ops/snapshot.h"

/* Commit it, or abort it and end everything that runs in the sandbox. */
int tx_finish(struct cay *c, const struct tx_result *tx, bool keep, struct err *e);
