/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "cli/detached.h"
#include "cli/keeper.h"
#include "store/warm.h"

void keeper_tend(const struct state *s)
{
	static const char *const words[] = { "pool", "keep", NULL };

	if (warm_exists(s) && warm_keeper(s) == 0)
		detached_start(s->dir, words);
}

void keeper_call(const struct state *s)
{
	keeper_tend(s);
	warm_poke(s);
}
