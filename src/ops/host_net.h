/* SPDX-License-Identifier: Apache-2.0 */
/* How a gateway resolves names and dials: as this host does now. */
#pragma once

#include "base/buf.h"
#include "ops/cay.h"

/* INVALID if a setting is unusable. */
int host_net_check(const struct host_net *n, struct err *e);
/*
 * Adds fields of MSG_C_BUILD for a recipe with a policy. They are not part of the stored recipe: a
 * proxy's address may contain a password.
 */
int host_net_put(const struct host_net *n, struct str recipe, struct buf *b, struct err *e);
