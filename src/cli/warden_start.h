/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and starting the warden of a new sandbox. */
#pragma once

#include "cli/newborn.h"

/* The paths of cay-warden and, in LIMIT_PATH bytes, of ourselves. */
int warden_find(char *out, size_t size, char *program, struct err *e) __attribute__((nonnull));
/* Start it with the lock and the slot; fills warden_fd and warden_pid. */
int warden_start(struct newborn *n, const char *warden, struct err *e);
