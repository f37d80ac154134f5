/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalog has of sandboxes that may be dead. ops/reconcile.c acts on it. */
#pragma once

#include "store/catalog.h"

/* By whole id. 1, 0 if there is none, -1. The caller releases *ret. */
int catalog_get_sandbox(struct catalog *c, const char *id, struct sandbox_row *ret, struct err *e);
/* 1: there is a row of it. */
int catalog_has_sandbox(struct catalog *c, const char *id, struct err *e);
/* All ids, oldest first; the caller frees *ret. */
int catalog_ids(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e);
/* Ids that pin layers without a row; the caller frees *ret. */
int catalog_unlisted_pins(struct catalog *c, char (**ret)[ID_SIZE], size_t *ret_n, struct err *e);
/* 1: the row needs reconciling if its sandbox is dead. */
int catalog_is_open(struct catalog *c, const char *id, struct err *e);
/* Set the state `lost`, also of its calls. Durable. */
int catalog_lose(struct catalog *c, const char *id, struct err *e);
/* 1: the sandbox keeps state, and has no snapshot of its end yet. */
int catalog_wants_lost(struct catalog *c, const char *id, struct err *e);
