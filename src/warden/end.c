/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending a sandbox: kill, wait, write the last events, answer clients, exit. The client that asked
 * for the end removes the files. If no client asked, the warden executes `cay reconcile` as its
 * last act: the warden itself never touches the catalog.
 *
 * A sandbox that ends with its command (`cay run`) is different. Its client gets the answer as soon
 * as every process but init is gone and the trace is complete. The warden then unmounts and removes
 * the files while the client continues. It holds the lock until then, so other processes know that
 * the cleanup is in progress. If the warden dies during it, the free lock tells them to clean up.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/state.h"
#include "warden/call/call.h"
#include "warden/call/stream.h"
#include "warden/features.h"
#include "warden/limit/limits.h"
#include "warden/limit/pause.h"
#include "warden/net/net.h"
#include "warden/ready.h"
#include "warden/warden.h"

enum { FLUSH_MS = 2000 };

static void end_calls(struct warden *w)
{
	struct call *next;

	for (struct call *c = w->calls; c; c = next) {
		next = c->next;
		call_end(c, "sandbox_ended");
	}
	if (w->spare)
		call_free(w->spare->call);
}

static void last_events(struct warden *w)
{
	if (!w->created_event)
		return;
	walk_finish(w);
	(void)trace_begin(&w->trace, "sandbox.end", 0, w->created_event);
	trace_text(&w->trace, "cause", str_of(end_cause_name(w->end_cause)));
	trace_text(&w->trace, "reason", str_of(w->end_reason));
	who_trace(&w->trace, &w->ended_by);
	(void)trace_end(&w->trace);
	(void)trace_flush(&w->trace);
}

static int open_state(struct warden *w, struct state *ret)
{
	if (!w->spec.state || !str_copy(ret->dir, sizeof ret->dir, str_of(w->spec.state)))
		return -ENOENT;
	ret->fd = open(ret->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->fd < 0 ? -errno : 0;
}

static void tell_final(struct warden *w)
{
	struct client *client = w->final->client;

	call_say_final(w->final);
	if (client)
		(void)conn_flush(&client->conn, FLUSH_MS);
}

static void destroy(struct warden *w)
{
	struct err ignored = { 0 };

	if (w->cell)
		(void)w->driver->destroy(w->cell, &ignored);
	w->cell = NULL;
}

/* If the files cannot be removed, the next `cay` that cleans up dead sandboxes finds them. */
static void end_behind(struct warden *w)
{
	struct state s;
	struct err ignored = { 0 };
	bool open = open_state(w, &s) == 0;

	if (open)
		(void)state_save_trace(&s, w->spec.id);
	tell_final(w);
	(void)sched_yield(); /* let the waiting client run first */
	destroy(w);
	clients_say_destroyed(w);
	layers_close(w);
	w->removed = true;
	if (!open)
		return;
	(void)state_trim_ended(&s);
	(void)state_remove(&s, w->spec.id, TAKE_FD(w->lock_fd), &ignored);
	fd_close(&s.fd);
}

static void end_now(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, end_timer);

	loop_timer_stop(&w->loop, &w->walks.timer);
	loop_timer_stop(&w->loop, &w->walks.sample_timer);
	disk_close(w);
	generation_end(w);
	expiry_close(w);
	conn_done(&w->init);
	if (!w->alone && w->watch)
		watch_reap(w->watch);
	if (!w->alone && w->cell)
		w->driver->reap(w->cell);
	end_calls(w);
	streams_free(w);
	net_close(w);
	last_events(w);
	w->state = SANDBOX_GONE;
	loop_stop(&w->loop);
	if (w->final && w->final->client) {
		end_behind(w);
		return;
	}
	if (w->final)
		call_say_final(w->final);
	destroy(w);
	clients_say_destroyed(w);
}

/* The sandbox ran only this command, and the command left no process: a group that can be removed
 * is empty. So there is no process to kill before the last walk over the files. */
static bool is_alone(struct warden *w)
{
	const struct call *c = w->final;
	long pid;

	if (!c || !c->client || w->ncalls != 1 || w->last_call != 1 || w->net)
		return false;
	return c->group[0] ? w->driver->group_remove(w->cell, c->group) == 0
			   : w->driver->others(w->cell, &pid) == 0;
}

void warden_end(struct warden *w, enum end_cause cause, const char *reason)
{
	if (!sandbox_may_move(w->state, SANDBOX_ENDING))
		return;
	/* Frozen processes die when killed, but init must run: thaw it. */
	if (w->state == SANDBOX_PAUSED && warden_has(w, HAS_FREEZE))
		(void)w->driver->freeze(w->cell, false, 0);
	ready_close(w);
	w->state = SANDBOX_ENDING;
	w->end_cause = cause;
	w->end_reason = reason;
	if (w->asking)
		who_set(&w->ended_by, w->asking->pid, w->asking->uid);
	w->alone = is_alone(w);
	if (!w->alone && w->cell)
		w->driver->kill(w->cell);
	loop_timer_set(&w->loop, &w->end_timer, 0, end_now);
}

static const char *or_env(const char *said, const char *name)
{
	return said ? said : getenv(name);
}

void warden_settle(struct warden *w)
{
	const char *program = or_env(w->program, WARDEN_ENV_PROGRAM);
	const char *id = or_env(w->spec.id, WARDEN_ENV_ID),
		   *dir = or_env(w->spec.state, "CAY_STATE");
	bool asked = false;

	for (struct client *c = w->clients; c; c = c->next)
		asked |= c->wants_destroyed || c->creator;
	if (!w->removed && !asked && program && id && dir) {
		/* An expired sandbox is removed. */
		char *gone[] = { "cay", "reconcile", "--remove", (char *)id, NULL };
		char *argv[] = { "cay", "reconcile", (char *)id, NULL };
		char state[LIMIT_PATH + 16], *envp[] = { state, NULL };
		sigset_t none;

		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)snprintf(state, sizeof state, "CAY_STATE=%s", dir);
		/* Exec closes the lock, which is CLOEXEC, so that reconcile can take it. */
		(void)w->exec(program, w->expired ? gone : argv, envp);
	}
}

void warden_leave(struct warden *w)
{
	warden_settle(w);
	_exit(0);
}
