/* SPDX-License-Identifier: Apache-2.0 */
/* When to look for file changes, and whose they may be. */
#include <errno.h>

#include "warden/call.h"
#include "warden/warden.h"

static uint64_t parent_of(void *ctx, uint32_t call)
{
	struct call *c = call_by_id(ctx, call);

	return c ? c->event : 0;
}

int walk_open(struct warden *w, struct err *e)
{
	struct changes_root roots[CELL_MOUNTS];
	int n = 0;

	if (w->trace_level != TRACE_FULL)
		return 0;
	for (int i = 0; i < w->spec.nmounts; i++)
		if (w->uppers[i] >= 0)
			roots[n++] = (struct changes_root){
				.upper_fd = w->uppers[i],
				.dest = w->spec.mounts[i].dest,
				.lower_fd = w->lowers[i],
			};
	return changes_new(w->dir_fd, roots, n, &w->changes, e);
}

/* Windows of calls that had ended before this walk began have served. */
static void forget_windows(struct warden *w, uint64_t walk_began_ns)
{
	int kept = 0;

	for (int i = 0; i < w->nwindows; i++)
		if (w->windows[i].end_ns >= walk_began_ns)
			w->windows[kept++] = w->windows[i];
	w->nwindows = kept;
}

void walk_now(struct warden *w)
{
	uint64_t began = clock_coarse_ns();
	struct err e = { 0 };
	int r;

	if (!w->changes || w->nwindows == 0)
		return;
	loop_timer_stop(&w->loop, &w->walk_timer);
	if (changes_walk(w->changes, w->windows, w->nwindows, &w->trace, parent_of, w, &e) < 0) {
		warden_fail(w, e.msg, e.sys);
		return;
	}
	r = trace_flush(&w->trace);
	if (r < 0)
		warden_fail(w, "write the trace", -r);
	forget_windows(w, began);
}

static void on_timer(struct loop_timer *t)
{
	walk_now(container_of(t, struct warden, walk_timer));
}

void walk_soon(struct warden *w)
{
	if (w->changes && w->state == SANDBOX_RUNNING && w->walk_timer.at_ns == 0)
		loop_timer_set(&w->loop, &w->walk_timer, changes_due(w->changes), on_timer);
}

void walk_window_open(struct warden *w, uint32_t call)
{
	struct changes_call *grown;

	if (!w->changes)
		return;
	grown = realloc(w->windows, sizeof *grown * (size_t)(w->nwindows + 1));
	if (!grown) {
		warden_fail(w, "remember a call", ENOMEM);
		return;
	}
	w->windows = grown;
	grown[w->nwindows++] = (struct changes_call){
		.call = call,
		.start_ns = clock_coarse_ns(),
		.end_ns = UINT64_MAX,
	};
}

void walk_window_close(struct warden *w, uint32_t call)
{
	for (int i = 0; i < w->nwindows; i++)
		if (w->windows[i].call == call && w->windows[i].end_ns == UINT64_MAX)
			w->windows[i].end_ns = clock_real_ns();
}
