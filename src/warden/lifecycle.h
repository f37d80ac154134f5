/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of a sandbox in its warden, as a table. Every change of state goes through it. */
#pragma once

#include <stdbool.h>

enum sandbox_state {
	SANDBOX_NEW,
	SANDBOX_READY, /* built, waiting for an owner (ready.h) */
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_ENDING,
	SANDBOX_GONE,
	SANDBOX_STATES
};

/* Why the sandbox ended. The trace has the name (sandbox.end), for programs. */
enum end_cause {
	END_FAILED,    /* an internal failure; the reason has details */
	END_COMMAND,   /* its command ended: cay run */
	END_KILLED,    /* a client ended it */
	END_TTL,       /* its time to live has passed */
	END_IDLE,      /* no command ran for too long */
	END_OOM,       /* the kernel killed init for lack of memory */
	END_CREATOR,   /* its creator disconnected before handing it over */
	END_TOLD,      /* the warden received SIGTERM */
	END_UNCLAIMED, /* no client can claim it any more */
	END_CAUSES
};

const char *end_cause_name(enum end_cause c);
const char *sandbox_state_name(enum sandbox_state s);
bool sandbox_may_move(enum sandbox_state from, enum sandbox_state to);
