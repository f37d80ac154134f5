/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/lifecycle.h"

#define TO(s) (1u << (s))

static const struct {
	const char *name;
	unsigned next;
} states[SANDBOX_STATES] = {
	[SANDBOX_NEW] = { "creating",
			  TO(SANDBOX_READY) | TO(SANDBOX_RUNNING) | TO(SANDBOX_ENDING) },
	[SANDBOX_READY] = { "ready", TO(SANDBOX_RUNNING) | TO(SANDBOX_ENDING) },
	[SANDBOX_RUNNING] = { "running", TO(SANDBOX_PAUSED) | TO(SANDBOX_ENDING) },
	[SANDBOX_PAUSED] = { "paused", TO(SANDBOX_RUNNING) | TO(SANDBOX_ENDING) },
	[SANDBOX_ENDING] = { "ending", TO(SANDBOX_GONE) },
	[SANDBOX_GONE] = { "gone", 0 },
};

const char *end_cause_name(enum end_cause c)
{
	static const char *const names[END_CAUSES] = {
		[END_FAILED] = "failed",   [END_COMMAND] = "command", [END_KILLED] = "killed",
		[END_TTL] = "ttl",	   [END_IDLE] = "idle",	      [END_OOM] = "oom",
		[END_CREATOR] = "creator", [END_TOLD] = "told",	      [END_UNCLAIMED] = "unclaimed",
	};

	return names[c];
}

const char *sandbox_state_name(enum sandbox_state s)
{
	return states[s].name;
}

bool sandbox_may_move(enum sandbox_state from, enum sandbox_state to)
{
	return states[from].next & TO(to);
}
