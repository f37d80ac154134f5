/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk limit for a file system without quotas: the warden measures the uppers periodically, using
 * at most 3 % of the time. A burst between two measurements can overshoot the limit; RLIMIT_FSIZE
 * keeps a single file below it. Above the limit the warden kills running calls. A call that starts
 * above the limit gets a moment to remove files.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "warden/limit/disk_usage.h"
#include "warden/limit/limits.h"

enum {
	LOOK_MS = 100,	/* while calls run */
	IDLE_MS = 2000, /* processes that a call left behind write too */
	GRACE_MS = 2000,
	SHARE = 30, /* a measurement of length T is followed by a pause of SHARE * T */
};

/* Stops counting above the limit. */
static uint64_t used(const struct warden *w)
{
	uint64_t most = w->spec.limits.disk, sum = 0;

	for (int i = 0; i < w->spec.nmounts && sum <= most; i++)
		if (w->uppers[i] >= 0) {
			uint64_t more = disk_usage(w->uppers[i], most - sum);

			sum = more > UINT64_MAX - sum ? UINT64_MAX : sum + more;
		}
	return sum;
}

static bool in_grace(const struct call *c)
{
	return c->disk_full && clock_mono_ns() - c->started_ns < GRACE_MS * NS_PER_MS;
}

static void trace_hit(struct warden *w, const struct call *c)
{
	(void)trace_begin(&w->trace, "limit.hit", c ? c->id : 0, c ? c->event : w->created_event);
	trace_text(&w->trace, "limit", STR("disk"));
	trace_num(&w->trace, "bytes", (int64_t)w->spec.limits.disk);
	warden_trace_end(w);
}

/* Also kill processes that earlier calls left behind, unless a call is in its grace time. */
static void kill_writers(struct warden *w)
{
	bool spared = false;

	for (struct call *c = w->calls; c; c = c->next) {
		if (c->exited && c->answered)
			continue;
		if (in_grace(c)) {
			spared = true;
			continue;
		}
		if (!c->kill_reason)
			trace_hit(w, c);
		call_kill(c, "disk");
	}
	if (!spared)
		(void)CONN_SAY(&w->init, MSG_SIGNAL, 0, { TAG_SIGNAL, SIGKILL, NULL });
}

static void look(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, disk_timer);
	uint64_t start = clock_mono_ns(), took, wait;
	bool full;

	if (w->state != SANDBOX_RUNNING)
		return;
	full = used(w) > w->spec.limits.disk;
	if (full && !w->disk_full && !w->running)
		trace_hit(w, NULL);
	if (full)
		kill_writers(w);
	w->disk_full = full;
	took = clock_mono_ns() - start;
	wait = (w->running ? LOOK_MS : IDLE_MS) * NS_PER_MS;
	loop_timer_set(&w->loop, t, took * SHARE > wait ? took * SHARE : wait, look);
}

static bool is_watched(const struct warden *w)
{
	return w->spec.limits.disk && !w->cell->has_quota;
}

/* With a quota: true if there is no room for even a little more. */
static bool quota_is_full(const struct warden *w)
{
	enum { SOME = 1 << 20, LITTLE = 64 << 10 };
	uint64_t part = w->spec.limits.disk / 16;
	off_t room = part > SOME ? SOME : part < LITTLE ? LITTLE : (off_t)part;
	auto_close int fd = openat(w->disk_fd, "upper", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EDQUOT;
	return fallocate(fd, 0, 0, room) < 0 && errno == EDQUOT;
}

void disk_close_call(struct call *c)
{
	if (!c->w->cell->has_quota || !quota_is_full(c->w))
		return;
	trace_hit(c->w, c);
	if (c->status != 0 && !c->kill_reason)
		c->kill_reason = "disk";
}

void disk_open(struct warden *w)
{
	if (is_watched(w))
		loop_timer_set(&w->loop, &w->disk_timer, IDLE_MS * NS_PER_MS, look);
}

void disk_close(struct warden *w)
{
	loop_timer_stop(&w->loop, &w->disk_timer);
}

void disk_wake(struct warden *w)
{
	const uint64_t soon = LOOK_MS * NS_PER_MS;

	/* Not before it is due, if the last measurement was long. */
	if (is_watched(w) && w->disk_timer.at_ns > clock_mono_ns() + soon &&
	    w->disk_timer.at_ns < clock_mono_ns() + IDLE_MS * NS_PER_MS)
		loop_timer_set(&w->loop, &w->disk_timer, soon, look);
}
