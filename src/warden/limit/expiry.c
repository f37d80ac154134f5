/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "warden/limit/pause.h"

static void expire(struct warden *w, enum end_cause cause, const char *reason)
{
	struct err e = { 0 };

	(void)trace_begin(&w->trace, "sandbox.timeout", 0, w->created_event);
	trace_text(&w->trace, "what", str_of(end_cause_name(cause)));
	trace_text(&w->trace, "action", w->pauses ? STR("pause") : STR("kill"));
	(void)warden_trace_end(w);
	/* A sandbox that cannot be paused must end. */
	if (w->pauses && pause_enter(w, reason, &e) == 0)
		return;
	w->expired = true;
	warden_end(w, cause, reason);
}

static void on_ttl(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, ttl_timer);

	w->ttl_over = true;
	expire(w, END_TTL, "its time to live has passed");
}

static void on_idle(struct loop_timer *t)
{
	expire(container_of(t, struct warden, idle_timer), END_IDLE, "it was idle for too long");
}

int expiry_take(struct warden *w, struct field f)
{
	uint64_t pauses = w->pauses;
	uint64_t *to = f.tag == TAG_TTL_MS	 ? &w->ttl_ms
		       : f.tag == TAG_IDLE_MS	 ? &w->idle_ms
		       : f.tag == TAG_ON_TIMEOUT ? &pauses
						 : NULL;

	if (!to)
		return 1;
	if (field_u64(f, to) < 0)
		return -EBADMSG;
	w->pauses = pauses != 0;
	return 0;
}

void expiry_open(struct warden *w)
{
	if (w->ttl_ms)
		expiry_extend(w, w->ttl_ms);
	expiry_activity(w);
}

void expiry_close(struct warden *w)
{
	loop_timer_stop(&w->loop, &w->ttl_timer);
	loop_timer_stop(&w->loop, &w->idle_timer);
}

void expiry_activity(struct warden *w)
{
	if (!w->idle_ms || w->state != SANDBOX_RUNNING)
		return;
	if (w->running)
		loop_timer_stop(&w->loop, &w->idle_timer);
	else
		loop_timer_set(&w->loop, &w->idle_timer, w->idle_ms * NS_PER_MS, on_idle);
}

void expiry_extend(struct warden *w, uint64_t ttl_ms)
{
	w->ttl_over = false;
	w->ttl_ms = ttl_ms;
	w->ttl_left_ns = 0;
	loop_timer_stop(&w->loop, &w->ttl_timer);
	if (ttl_ms && w->state == SANDBOX_PAUSED) {
		w->ttl_timer.fn = on_ttl;
		w->ttl_left_ns = ttl_ms * NS_PER_MS;
	} else if (ttl_ms) {
		loop_timer_set(&w->loop, &w->ttl_timer, ttl_ms * NS_PER_MS, on_ttl);
	}
	expiry_note(w);
}

void expiry_note(struct warden *w)
{
	uint64_t left = w->ttl_timer.at_ns ? expiry_ttl_left_ms(w) : UINT64_MAX;

	w->expires_at_ms = left == UINT64_MAX ? 0 : clock_real_ns() / NS_PER_MS + left;
}

uint64_t expiry_until(struct warden *w, uint64_t at_ms)
{
	const uint64_t most_ms = UINT64_MAX / NS_PER_S;
	uint64_t now_ms = clock_real_ns() / NS_PER_MS;
	uint64_t ttl_ms = !at_ms ? 0 : at_ms > now_ms ? at_ms - now_ms : 1;

	expiry_extend(w, ttl_ms < most_ms ? ttl_ms : most_ms);
	if (w->expires_at_ms)
		w->expires_at_ms = at_ms; /* exactly as requested, without rounding */
	return ttl_ms;
}

static uint64_t left_ms(const struct loop_timer *t, uint64_t held_ns)
{
	uint64_t now = clock_mono_ns();

	if (t->at_ns)
		return t->at_ns > now ? (t->at_ns - now) / NS_PER_MS : 0;
	return held_ns ? held_ns / NS_PER_MS : UINT64_MAX;
}

uint64_t expiry_ttl_left_ms(const struct warden *w)
{
	return left_ms(&w->ttl_timer, w->ttl_left_ns);
}

uint64_t expiry_idle_left_ms(const struct warden *w)
{
	return left_ms(&w->idle_timer, w->idle_left_ns);
}
