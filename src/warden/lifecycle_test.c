/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/lifecycle.h"

#include "t.h"

static void only_the_steps_of_a_life_are_allowed(void)
{
	static const bool may[SANDBOX_STATES][SANDBOX_STATES] = {
		[SANDBOX_NEW][SANDBOX_READY] = true,	  [SANDBOX_NEW][SANDBOX_RUNNING] = true,
		[SANDBOX_READY][SANDBOX_RUNNING] = true,  [SANDBOX_READY][SANDBOX_ENDING] = true,
		[SANDBOX_NEW][SANDBOX_ENDING] = true,	  [SANDBOX_RUNNING][SANDBOX_ENDING] = true,
		[SANDBOX_RUNNING][SANDBOX_PAUSED] = true, [SANDBOX_PAUSED][SANDBOX_RUNNING] = true,
		[SANDBOX_PAUSED][SANDBOX_ENDING] = true,  [SANDBOX_ENDING][SANDBOX_GONE] = true,
	};

	for (int from = 0; from < SANDBOX_STATES; from++)
		for (int to = 0; to < SANDBOX_STATES; to++)
			CHECK(sandbox_may_move((enum sandbox_state)from, (enum sandbox_state)to) ==
			      may[from][to]);
}

static void states_have_the_names_that_clients_know(void)
{
	CHECK_STR(sandbox_state_name(SANDBOX_NEW), "creating");
	CHECK_STR(sandbox_state_name(SANDBOX_READY), "ready");
	CHECK_STR(sandbox_state_name(SANDBOX_RUNNING), "running");
	CHECK_STR(sandbox_state_name(SANDBOX_PAUSED), "paused");
	CHECK_STR(sandbox_state_name(SANDBOX_ENDING), "ending");
	CHECK_STR(sandbox_state_name(SANDBOX_GONE), "gone");
}

T_MAIN(T(only_the_steps_of_a_life_are_allowed), T(states_have_the_names_that_clients_know))
