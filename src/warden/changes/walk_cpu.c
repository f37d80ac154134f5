/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/walk_cpu.h"

#include <fcntl.h>

#include "base/io.h"
#include "warden/call/call.h"
#include "warden/features.h"
#include "warden/warden.h"

enum { BUSY_MS = 100, IDLE_MS = 1600, SETTLED_MS = 25 };

/* On processors without a tick, the kernel charges a running task up to a second late. */
static bool is_charged_late(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	if (io_read_file(AT_FDCWD, "/sys/devices/system/cpu/nohz_full", &b) < 0 || !b.data)
		return false;
	return b.data[strcspn(b.data, "0123456789")] != '\0';
}

static bool may_sample(struct warden *w)
{
	static int late = -1;

	if (!w->walks.now.changes || !warden_has(w, HAS_GROUPS))
		return false;
	if (late < 0)
		late = is_charged_late();
	return !late;
}

static int count_live(const struct walk *now)
{
	int n = 0;

	for (int i = 0; i < now->ncalls; i++)
		n += now->calls[i].end_ns == UINT64_MAX;
	return n;
}

/* While init moves a directory for a call, the call itself uses no processor time. */
static bool is_usable(struct warden *w)
{
	struct walks *s = &w->walks;
	uint64_t orders = w->watch ? watch_rename_orders(w->watch) : 0;
	bool usable = orders == s->sampled_orders && !(w->watch && watch_is_renaming(w->watch));

	s->sampled_orders = orders;
	return usable;
}

/* True if it was busy since the last sample. */
static bool sample_call(struct warden *w, struct changes_call *of, bool usable)
{
	const struct call *c = call_by_id(w, of->call);
	uint64_t before = clock_real_ns(), was = of->idle.cpu_us, us = 0;

	if (!c || !c->group[0] || w->driver->group_cpu(w->cell, c->group, &us) < 0) {
		of->idle.sampled = false;
		return true;
	}
	changes_idle_sample(&of->idle, before, clock_real_ns(), us, usable);
	return us != was;
}

static void on_sample(struct loop_timer *t)
{
	walk_sample(container_of(t, struct warden, walks.sample_timer));
}

void walk_sample(struct warden *w)
{
	struct walks *s = &w->walks;
	struct walk *now = &s->now;
	bool busy = false, usable;
	int live = count_live(now);

	if (live == 0 || !may_sample(w)) {
		loop_timer_stop(&w->loop, &s->sample_timer);
		return;
	}
	usable = is_usable(w);
	for (int i = 0; i < now->ncalls; i++)
		if (now->calls[i].end_ns == UINT64_MAX)
			busy |= sample_call(w, &now->calls[i], usable);
	s->sample_ms = busy ? BUSY_MS : s->sample_ms < IDLE_MS ? 2 * s->sample_ms : IDLE_MS;
	if (live > 1)
		loop_timer_set(&w->loop, &s->sample_timer, s->sample_ms * NS_PER_MS, on_sample);
	else
		loop_timer_stop(&w->loop, &s->sample_timer);
}

uint64_t walk_sample_due_ns(struct warden *w)
{
	struct walks *s = &w->walks;
	uint64_t now = clock_mono_ns(), due = s->closed_ns + SETTLED_MS * NS_PER_MS;

	if (s->now.ncalls < 2 || count_live(&s->now) == 0 || !may_sample(w))
		return 0;
	return now < due ? due - now : 0;
}
