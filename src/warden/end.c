/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a sandbox down: kill, wait, write the last events, tell those who asked, leave. The
 * files are removed by whoever asked for the end, or where nobody did by `cay settle`, into
 * which the warden turns itself as its last act: the catalog is none of its business.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "warden/call.h"
#include "warden/limits.h"
#include "warden/pause.h"
#include "warden/warden.h"

static void end_calls(struct warden *w)
{
	while (w->calls)
		call_end(w->calls, "sandbox_ended");
}

static void last_events(struct warden *w)
{
	if (!w->created_event)
		return;
	walk_now(w);
	(void)trace_begin(&w->trace, "sandbox.end", 0, w->created_event);
	trace_text(&w->trace, "reason", str_of(w->end_reason));
	(void)trace_end(&w->trace);
	(void)trace_flush(&w->trace);
}

static void end_now(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, end_timer);
	struct err e = { 0 };

	loop_timer_stop(&w->loop, &w->walk_timer);
	disk_close(w);
	generation_end(w);
	expiry_close(w);
	conn_done(&w->init);
	(void)ns_driver.destroy(&w->cell, &e);
	end_calls(w);
	last_events(w);
	w->state = SANDBOX_GONE;
	clients_say_destroyed(w);
	loop_stop(&w->loop);
}

void warden_end(struct warden *w, const char *reason)
{
	if (!sandbox_may_move(w->state, SANDBOX_ENDING))
		return;
	/* Frozen processes die all the same; init, stopped by a signal or not, must go on. */
	if (w->state == SANDBOX_PAUSED && w->cell.has_cgroup)
		(void)cgroup_freeze(&w->cell.cgroup, false, 0);
	w->state = SANDBOX_ENDING;
	w->end_reason = reason;
	ns_driver.kill(&w->cell);
	loop_timer_set(&w->loop, &w->end_timer, 0, end_now);
}

void warden_leave(struct warden *w)
{
	bool asked = false;

	for (struct client *c = w->clients; c; c = c->next)
		asked |= c->wants_destroyed || c->creator;
	if (!asked && w->program && w->spec.id && w->spec.state) {
		/* What has outlived its time is not kept. */
		char *gone[] = { "cay", "settle", "--remove", (char *)w->spec.id, NULL };
		char *argv[] = { "cay", "settle", (char *)w->spec.id, NULL };
		char state[LIMIT_PATH + 16], *envp[] = { state, NULL };
		sigset_t none;

		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)snprintf(state, sizeof state, "CAY_STATE=%s", w->spec.state);
		/* Closes the lock, which is CLOEXEC: it is free for settle to take. */
		(void)execve(w->program, w->expired ? gone : argv, envp);
	}
	_exit(0);
}
