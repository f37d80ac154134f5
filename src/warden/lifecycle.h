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

/* Why it ended. Its name is in the trace (sandbox.end), for programs. */
enum end_cause {
	END_FAILED,    /* something broke; the reason says what */
	END_COMMAND,   /* its command has ended: cay run */
	END_KILLED,    /* a client asked for it */
	END_TTL,       /* its time to live has passed */
	END_IDLE,      /* no command ran for too long */
	END_OOM,       /* the kernel killed init for lack of memory */
	END_CREATOR,   /* its creator went away before it was handed over */
	END_TOLD,      /* SIGTERM to its warden */
	END_UNCLAIMED, /* nobody may claim it any more */
	END_CAUSES
};

const char *end_cause_name(enum end_cause c);
const char *sandbox_state_name(enum sandbox_state s);
bool sandbox_may_move(enum sandbox_state from, enum sandbox_state to);
