/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction around one command. */
#pragma once

#include "ops/snapshot.h"

/* Keep it, or drop it with all that runs in the sandbox. */
int tx_finish(struct cay *c, const struct tx_result *tx, bool keep, struct err *e);
