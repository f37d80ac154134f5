/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/walk.h"

#include <errno.h>

#include "warden/changes/changes_job.h"
#include "warden/changes/walk_cpu.h"
#include "warden/changes/walk_settle.h"
#include "warden/generation/generation.h"
#include "warden/warden.h"

enum {
	RENAME_MS = 20,
	GROUP = 64, /* events to write before looking for other work: about 0.2 ms */
	PAUSE_MS = 1,
	SPOILED = 5, /* walks in a row that a moved directory may spoil */
};

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
	return changes_new(w->dir_fd, roots, n, &w->walks.now.changes, e);
}

static void walk_done(struct walk *walk)
{
	changes_free(walk->changes);
	free(walk->calls);
	free(walk->heap);
	*walk = (struct walk){ 0 };
}

static struct changes_sink sink_of(struct warden *w, const struct walk *walk)
{
	return (struct changes_sink){ .trace = &w->trace, .before = walk->before };
}

static void flush_trace(struct warden *w)
{
	int r = trace_flush(&w->trace);

	if (r < 0)
		warden_fail(w, "write the trace", -r);
}

/* The walk begins: it finds all changes of calls that have ended by now. */
static void mark_covered(struct warden *w, struct walk *walk)
{
	struct walks *s = &w->walks;

	for (int i = 0; i < walk->ncalls; i++)
		walk->calls[i].covered = walk->calls[i].end_ns != UINT64_MAX;
	if (walk != &s->now)
		return;
	if (walk->ncalls > 1)
		walk_sample(w);
	s->wanted = s->again = s->waited = false;
	s->begun++;
	loop_timer_stop(&w->loop, &s->timer);
}

static void forget_covered(struct walk *walk)
{
	int kept = 0;

	for (int i = 0; i < walk->ncalls; i++)
		if (!walk->calls[i].covered)
			walk->calls[kept++] = walk->calls[i];
	walk->ncalls = kept;
}

/* All events of the walk are written. */
static void complete(struct warden *w, struct walk *walk)
{
	struct walks *s = &w->walks;

	s->deaths = s->spoiled = 0;
	flush_trace(w);
	forget_covered(walk);
	if (walk == &s->now) {
		s->done = s->begun;
		if (s->again)
			walk_soon(w, false);
		return;
	}
	if (walk->again) {
		walk->again = false;
		return;
	}
	s->old = walk->next;
	s->nold--;
	if (walk->heap)
		turn_remove(w, walk->heap);
	walk_done(walk);
	free(walk);
}

/* Walk in the loop. 1; 0 if only_short and the walk is long; -1: the sandbox ends. */
static int walk_here(struct warden *w, struct walk *walk, bool only_short)
{
	struct changes_sink to = sink_of(w, walk);
	struct err e = { 0 };
	int r = 1;

	if (walk->ncalls == 0 || !walk->changes)
		return 1;
	if (only_short)
		r = changes_walk_short(walk->changes, walk->calls, walk->ncalls, &to, &e);
	else
		r = changes_walk(walk->changes, walk->calls, walk->ncalls, &to, &e) < 0 ? -1 : 1;
	if (r < 0)
		warden_fail(w, e.msg, e.sys);
	return r;
}

static void drop_job(struct warden *w)
{
	struct walks *s = &w->walks;

	loop_del(&w->loop, &s->io);
	loop_timer_stop(&w->loop, &s->emit_timer);
	changes_job_free(s->job);
	s->job = NULL;
	s->of = NULL;
	s->emitting = false;
}

/* The job came to nothing: its walk has to be done again. */
static void give_up_job(struct warden *w)
{
	struct walks *s = &w->walks;

	s->wanted |= s->of == &s->now;
	drop_job(w);
}

/* Take over the child's result. False: the walk has to be done again. */
static bool collect(struct warden *w)
{
	struct walks *s = &w->walks;
	int r;

	loop_del(&w->loop, &s->io);
	r = changes_job_collect(s->job, s->of->calls, s->of->ncalls);
	if (r == 0) {
		s->emitting = true;
		return true;
	}
	s->deaths++;
	give_up_job(w);
	return false;
}

/* Write some events. False: there are none left, or the trace failed. */
static bool emit_some(struct warden *w, uint32_t most)
{
	struct walks *s = &w->walks;
	struct changes_sink to = sink_of(w, s->of);
	struct walk *of = s->of;
	struct err e = { 0 };
	int r = changes_job_emit(s->job, &to, most, &e);

	if (r > 0)
		return true;
	if (r < 0) {
		give_up_job(w);
		warden_fail(w, e.msg, e.sys);
		return false;
	}
	drop_job(w);
	complete(w, of);
	return false;
}

static void walk_next(struct warden *w);

/* A directory that init was moving during the walk would look deleted. */
static bool is_spoiled(struct warden *w)
{
	struct walks *s = &w->walks;

	if (s->of != &s->now || !w->watch || watch_rename_orders(w->watch) == s->orders)
		return false;
	return !s->settles && s->spoiled++ < SPOILED;
}

static void on_emit(struct loop_timer *t)
{
	walk_idle(container_of(t, struct warden, walks.emit_timer));
}

/*
 * With pauses, because the scheduler lets a process wait that was busy all the time, and clients
 * would wait with it.
 */
static void emit_later(struct warden *w)
{
	struct walks *s = &w->walks;

	w->loop.chores = s->settles != NULL;
	if (!s->settles)
		loop_timer_set(&w->loop, &s->emit_timer, PAUSE_MS * NS_PER_MS, on_emit);
}

static void on_timer(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, walks.timer);

	w->walks.wanted = true;
	walk_next(w);
}

static void on_walked(struct loop_io *io, uint32_t events)
{
	struct warden *w = container_of(io, struct warden, walks.io);
	struct walks *s = &w->walks;

	(void)events;
	if (is_spoiled(w)) {
		give_up_job(w);
		s->wanted = false;
		loop_timer_set(&w->loop, &s->timer, RENAME_MS * NS_PER_MS, on_timer);
	} else if (collect(w)) {
		emit_later(w);
		return;
	}
	walk_next(w);
}

static int start_job(struct warden *w, struct walk *walk)
{
	struct walks *s = &w->walks;
	struct err e = { 0 };
	int r;

	if (changes_job_start(walk->changes, walk->calls, walk->ncalls, &s->job, &e) < 0)
		return -1;
	s->of = walk;
	s->orders = w->watch ? watch_rename_orders(w->watch) : 0;
	r = loop_add(&w->loop, &s->io, changes_job_pidfd(s->job), EPOLLIN, on_walked);
	if (r < 0)
		drop_job(w);
	return r;
}

/* Walk, here or in a child. False: nothing more can be done now. */
static bool walk_one(struct warden *w, struct walk *walk)
{
	struct walks *s = &w->walks;
	int r;

	mark_covered(w, walk);
	r = walk_here(w, walk, s->deaths < WALK_DEATHS);
	if (r == 0 && start_job(w, walk) == 0)
		return false;
	/* No child can be started: that is no reason to lose events. */
	if (r == 0)
		r = walk_here(w, walk, false);
	if (r > 0)
		complete(w, walk);
	return r > 0;
}

/* How long to wait with a walk of `now`. */
static uint64_t wait_ns(struct warden *w)
{
	struct walks *s = &w->walks;
	uint64_t now = clock_mono_ns();

	if (!s->settles && w->watch && watch_is_renaming(w->watch))
		return RENAME_MS * NS_PER_MS;
	/* Until one moment per walk: calls may end all the time, and each would put it off again.
	 */
	if (!s->waited) {
		s->waited = true;
		s->wait_until_ns = now + walk_sample_due_ns(w);
	}
	return now < s->wait_until_ns ? s->wait_until_ns - now : 0;
}

/* Begin the next walk, unless one is in progress. */
static void walk_next(struct warden *w)
{
	struct walks *s = &w->walks;

	while (!s->job && (s->old || s->wanted)) {
		uint64_t wait = s->old ? 0 : wait_ns(w);

		if (wait) {
			s->wanted = false;
			loop_timer_set(&w->loop, &s->timer, wait, on_timer);
			break;
		}
		if (!walk_one(w, s->old ? s->old : &s->now))
			break;
	}
	settle_answer(w);
}

void walk_want(struct warden *w)
{
	w->walks.wanted = true;
	if (w->walks.emitting)
		emit_later(w);
	walk_next(w);
}

void walk_idle(struct warden *w)
{
	if (!w->walks.emitting)
		return;
	if (emit_some(w, GROUP))
		emit_later(w);
	else
		walk_next(w);
}

void walk_finish(struct warden *w)
{
	struct walks *s = &w->walks;

	if (s->job && (s->emitting || collect(w)))
		(void)emit_some(w, UINT32_MAX);
	while (s->old) {
		struct walk *oldest = s->old;

		/* Even if it fails, nobody will want it later. */
		oldest->again = false;
		mark_covered(w, oldest);
		(void)walk_here(w, oldest, false);
		complete(w, oldest);
	}
	if (s->now.changes) {
		mark_covered(w, &s->now);
		if (walk_here(w, &s->now, false) > 0)
			complete(w, &s->now);
	}
	settle_answer(w);
}

/* Calls that have not ended may run in the next generation. */
static int copy_calls(const struct walk *from, struct walk *to)
{
	to->calls = malloc(((size_t)from->ncalls + 1) * sizeof *to->calls);
	if (!to->calls)
		return -1;
	for (int i = 0; i < from->ncalls; i++)
		to->calls[i] = from->calls[i];
	to->ncalls = from->ncalls;
	return 0;
}

static void drop_ended(struct walk *walk)
{
	int kept = 0;

	for (int i = 0; i < walk->ncalls; i++)
		if (walk->calls[i].end_ns == UINT64_MAX)
			walk->calls[kept++] = walk->calls[i];
	walk->ncalls = kept;
}

/* Make `now` the newest old walk. -1: not possible. */
static int push_old(struct warden *w, unsigned generation)
{
	struct walks *s = &w->walks;
	struct walk **end = &s->old, *old;
	struct err ignored = { 0 };

	if (s->nold >= WALK_OLD || changes_keep(s->now.changes, &ignored) < 0)
		return -1;
	old = calloc(1, sizeof *old);
	if (!old || copy_calls(&s->now, old) < 0) {
		free(old);
		return -1;
	}
	old->changes = s->now.changes;
	old->generation = generation;
	s->now.changes = NULL;
	while (*end)
		end = &(*end)->next;
	*end = old;
	s->nold++;
	if (s->of == &s->now) {
		s->of = old;
		old->again = true;
	}
	s->wanted |= s->settles != NULL; /* the walk that the clients wait for is an old one now */
	return 0;
}

void walk_retire(struct warden *w, unsigned generation)
{
	struct walks *s = &w->walks;
	bool needed = s->now.ncalls > 0 || s->of == &s->now;

	if (!s->now.changes)
		return;
	if (needed && !s->job && !s->old) {
		mark_covered(w, &s->now);
		needed = walk_here(w, &s->now, true) <= 0;
		if (!needed)
			complete(w, &s->now);
	}
	if (needed && push_old(w, generation) < 0)
		walk_finish(w);
	changes_free(s->now.changes);
	s->now.changes = NULL;
	drop_ended(&s->now);
}

void walk_switched(struct warden *w)
{
	for (struct walk *old = w->walks.old; old; old = old->next)
		if (!old->before)
			old->before = w->trace.seq;
	walk_next(w);
}

bool walk_remove_later(struct warden *w, unsigned generation, const char *heap)
{
	for (struct walk *old = w->walks.old; old; old = old->next)
		if (old->generation == generation) {
			free(old->heap);
			old->heap = strdup(heap);
			return old->heap != NULL;
		}
	return false;
}

void walk_close(struct warden *w)
{
	struct walks *s = &w->walks;

	if (s->job)
		drop_job(w);
	while (s->old) {
		struct walk *old = s->old;

		s->old = old->next;
		walk_done(old);
		free(old);
	}
	s->nold = 0;
	walk_done(&s->now);
	walk_forget(w, NULL);
}

/*
 * Best when the last process of a call is gone, because then its changes cannot be attributed to
 * the next call. A call that leaves processes behind delays the walk only briefly.
 */
void walk_soon(struct warden *w, bool lingers)
{
	const uint64_t patience = 20 * NS_PER_MS;
	struct walks *s = &w->walks;
	uint64_t delay;

	if (!s->now.changes || w->state != SANDBOX_RUNNING)
		return;
	if (s->of == &s->now) {
		s->again = true;
		return;
	}
	delay = changes_due(s->now.changes);
	if (lingers && delay < patience)
		delay = patience;
	if (s->timer.at_ns == 0 || clock_mono_ns() + delay < s->timer.at_ns)
		loop_timer_set(&w->loop, &s->timer, delay, on_timer);
}

void walk_window_open(struct warden *w, uint32_t call, uint64_t event)
{
	struct walk *now = &w->walks.now;
	struct changes_call *grown;

	if (!now->changes)
		return;
	walk_sample(w);
	grown = realloc(now->calls, sizeof *grown * (size_t)(now->ncalls + 1));
	if (!grown) {
		warden_fail(w, "remember a call", ENOMEM);
		return;
	}
	now->calls = grown;
	grown[now->ncalls++] = (struct changes_call){
		.call = call,
		.event = event,
		.start_ns = clock_coarse_ns(),
		.end_ns = UINT64_MAX,
	};
	if (now->ncalls > 1)
		walk_sample(w);
}

static void close_window(struct walk *walk, uint32_t call)
{
	for (int i = 0; i < walk->ncalls; i++)
		if (walk->calls[i].call == call && walk->calls[i].end_ns == UINT64_MAX)
			walk->calls[i].end_ns = clock_real_ns();
}

void walk_window_close(struct warden *w, uint32_t call)
{
	if (w->walks.now.ncalls > 1)
		walk_sample(w);
	w->walks.closed_ns = clock_mono_ns();
	close_window(&w->walks.now, call);
	for (struct walk *old = w->walks.old; old; old = old->next)
		close_window(old, call);
	walk_soon(w, false);
}
