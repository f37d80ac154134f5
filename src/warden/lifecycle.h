/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox in its warden, as a table. Every change of state goes through here. */
#pragma once

#include <stdbool.h>

enum sandbox_state {
	SANDBOX_NEW,
	SANDBOX_WARM, /* built, and waits for an owner (warm.h) */
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_ENDING,
	SANDBOX_GONE,
	SANDBOX_STATES
};

const char *sandbox_state_name(enum sandbox_state s);
bool sandbox_may_move(enum sandbox_state from, enum sandbox_state to);
