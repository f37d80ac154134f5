/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the warden of a new sandbox. */
#pragma once

#include "ops/create/creation.h"

/*
 * Start the warden with the lock and the slot. Fills warden_fd and warden_pid. Needs
 * cay_programs().
 */
int warden_start(struct creation *n, struct err *e);
