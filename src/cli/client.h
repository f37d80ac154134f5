/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to the warden of a running sandbox. */
#pragma once

#include <stdint.h>

#include "store/state.h"

/*
 * Ask the warden of `id` to write every event up to now; the number and hash of the last one.
 * UNAVAILABLE where it does not answer.
 */
int client_settle(const struct state *s, const char *id, uint64_t *ret_seq, char ret_hash[65],
		  struct err *e);
