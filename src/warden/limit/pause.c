/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/limit/pause.h"

#include <errno.h>
#include <signal.h>

#include "warden/call/call.h"
#include "warden/features.h"
#include "warden/limit/limits.h"

enum { FREEZE_WAIT_MS = 1000 };

/* Stop a timer and keep the time that it had left. */
static void timer_hold(struct warden *w, struct loop_timer *t, uint64_t *left_ns)
{
	uint64_t now = clock_mono_ns();

	*left_ns = 0;
	if (!t->at_ns)
		return;
	*left_ns = t->at_ns > now ? t->at_ns - now : 1;
	loop_timer_stop(&w->loop, t);
}

static void timer_go_on(struct warden *w, struct loop_timer *t, uint64_t *left_ns)
{
	if (*left_ns)
		loop_timer_set(&w->loop, t, *left_ns, t->fn);
	*left_ns = 0;
}

static void stop_clocks(struct warden *w)
{
	for (struct call *c = w->calls; c; c = c->next)
		timer_hold(w, &c->timeout, &c->timeout_left_ns);
	timer_hold(w, &w->ttl_timer, &w->ttl_left_ns);
	timer_hold(w, &w->idle_timer, &w->idle_left_ns);
	expiry_note(w);
}

static void start_clocks(struct warden *w)
{
	for (struct call *c = w->calls; c; c = c->next)
		timer_go_on(w, &c->timeout, &c->timeout_left_ns);
	timer_go_on(w, &w->ttl_timer, &w->ttl_left_ns);
	w->idle_left_ns = 0;
	expiry_note(w);
	expiry_activity(w);
}

static int freeze(struct warden *w, bool on)
{
	if (warden_has(w, HAS_FREEZE))
		return w->driver->freeze(w->cell, on, FREEZE_WAIT_MS);
	return CONN_SAY(&w->init, MSG_SIGNAL, 0, { TAG_SIGNAL, on ? SIGSTOP : SIGCONT, NULL });
}

int pause_enter(struct warden *w, const char *reason, struct err *e)
{
	uint64_t start = clock_mono_ns();
	int r;

	if (w->state == SANDBOX_PAUSED)
		return 0;
	if (w->gen_switch)
		return err_set(e, ERR_CONFLICT, "a snapshot or rollback is under way");
	if (!sandbox_may_move(w->state, SANDBOX_PAUSED))
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	r = freeze(w, true);
	if (r < 0) {
		(void)freeze(w, false);
		return err_sys(e, -r, "freeze the sandbox");
	}
	w->state = SANDBOX_PAUSED;
	w->paused_ns = clock_mono_ns();
	stop_clocks(w);
	(void)trace_begin(&w->trace, "sandbox.pause", 0, w->created_event);
	trace_text(&w->trace, "reason", str_of(reason));
	trace_text(&w->trace, "method", warden_has(w, HAS_FREEZE) ? STR("freezer") : STR("signal"));
	trace_num(&w->trace, "freeze_us", (int64_t)((w->paused_ns - start) / NS_PER_US));
	warden_trace_asker(w);
	(void)warden_trace_end(w);
	return 0;
}

int pause_leave(struct warden *w, const char *reason, struct err *e)
{
	int r;

	if (w->state == SANDBOX_RUNNING)
		return 0;
	if (w->state != SANDBOX_PAUSED)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	/* A copy is in progress and needs the sandbox frozen. */
	if (w->gen_switch)
		return err_set(e, ERR_CONFLICT, "a snapshot is under way");
	r = freeze(w, false);
	if (r < 0)
		return err_sys(e, -r, "thaw the sandbox");
	w->state = SANDBOX_RUNNING;
	(void)trace_begin(&w->trace, "sandbox.resume", 0, w->created_event);
	trace_text(&w->trace, "reason", str_of(reason));
	trace_num(&w->trace, "paused_ms", (int64_t)((clock_mono_ns() - w->paused_ns) / NS_PER_MS));
	warden_trace_asker(w);
	(void)warden_trace_end(w);
	/* The time to live had expired: start it again. */
	if (w->ttl_over)
		expiry_extend(w, w->ttl_ms);
	start_clocks(w);
	disk_open(w);
	return 0;
}
