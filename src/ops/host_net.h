/* SPDX-License-Identifier: Apache-2.0 */
/* How a gateway resolves names and dials: as this host does, just now. */
#pragma once

#include "base/buf.h"
#include "ops/cay.h"

/* INVALID where it cannot be used. */
int host_net_check(const struct host_net *n, struct err *e);
/*
 * Fields of MSG_C_BUILD for a recipe that has a policy. They are no part of the recipe, which is
 * kept: a proxy's address may have a password in it.
 */
int host_net_put(const struct host_net *n, struct str recipe, struct buf *b, struct err *e);
