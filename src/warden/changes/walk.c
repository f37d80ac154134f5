/* SPDX-License-Identifier: Apache-2.0 */
/* When to search for file changes, and which calls may have made them. */
#include <errno.h>

#include "warden/call/call.h"
#include "warden/warden.h"

enum { RENAME_MS = 20 };

static uint64_t parent_of(void *ctx, uint32_t call)
{
	struct call *c = call_by_id(ctx, call);

	return c ? c->event : 0;
}

/* For a --dir, because a merge may need its original files. */
static struct changes_base *base_of(struct warden *w, int i)
{
	if (!w->spec.mounts[i].has_owner)
		return NULL;
	w->bases[i] = (struct changes_base){
		.dirfd = w->dir_fd,
		.mount = i,
		.made_ns = layers_frozen(w, i)
				   ? UINT64_MAX
				   : clock_real_ns() - (clock_mono_ns() - w->started_ns),
	};
	return &w->bases[i];
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
				.layers = w->layer_fds[i],
				.nlayers = w->nlayer_fds[i],
				.privileged = w->rootful,
				.base = base_of(w, i),
			};
	return changes_new(w->dir_fd, roots, n, &w->changes, e);
}

/* The walk covered every ended call: remove its window. */
static void forget_windows(struct warden *w)
{
	int kept = 0;

	for (int i = 0; i < w->nwindows; i++)
		if (w->windows[i].end_ns == UINT64_MAX)
			w->windows[kept++] = w->windows[i];
	w->nwindows = kept;
}

void walk_now(struct warden *w)
{
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
	forget_windows(w);
}

void walk_retire(struct warden *w)
{
	walk_now(w);
	changes_free(w->changes);
	w->changes = NULL;
}

static void on_timer(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, walk_timer);

	/* A half-moved directory would look deleted. */
	if (w->watch && watch_is_renaming(w->watch))
		loop_timer_set(&w->loop, t, RENAME_MS * NS_PER_MS, on_timer);
	else
		walk_now(w);
}

/*
 * Best when the last process of a call is gone, because then its changes cannot be attributed to
 * the next call. A call that leaves processes behind delays the walk only briefly.
 */
void walk_soon(struct warden *w, bool lingers)
{
	const uint64_t patience = 20 * NS_PER_MS;
	uint64_t delay;

	if (!w->changes || w->state != SANDBOX_RUNNING)
		return;
	delay = changes_due(w->changes);
	if (lingers && delay < patience)
		delay = patience;
	if (w->walk_timer.at_ns == 0 || clock_mono_ns() + delay < w->walk_timer.at_ns)
		loop_timer_set(&w->loop, &w->walk_timer, delay, on_timer);
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
	walk_soon(w, false);
}
