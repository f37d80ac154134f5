/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the first switch of a sandbox, the driver prepares the next one whenever nothing runs: it
 * does the part that is the same for every switch.
 */
#include "warden/call/call.h"
#include "warden/generation/generation.h"

static void on_ahead(struct loop_timer *timer)
{
	struct warden *w = container_of(timer, struct warden, ahead_timer);

	if (w->state == SANDBOX_RUNNING && !w->gen_switch && !w->unsealed && !w->running)
		w->driver->renew_ahead(w->cell, &w->spec);
}

/* On the next turn of the loop, so that clients get the answers of this turn first. */
void generation_ahead(struct warden *w)
{
	if (w->switched && !w->running)
		loop_timer_set(&w->loop, &w->ahead_timer, 0, on_ahead);
}
