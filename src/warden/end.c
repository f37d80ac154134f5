/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a sandbox down: kill, wait, write the last events, tell those who asked, leave. The
 * files are removed by whoever asked for the end, or where nobody did by `cay settle`, into
 * which the warden turns itself as its last act: the catalog is none of its business.
 *
 * A sandbox that ends with its command (`cay run`) is different: its client is told as soon as
 * every process but init is gone and the trace is whole, and the warden itself takes down the
 * mounts and removes the files while the client goes on. It holds the lock until then, so that
 * whoever comes by knows that all is well; and if it dies over it, that all is left to be cleaned
 * up.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/state.h"
#include "warden/call.h"
#include "warden/limits.h"
#include "warden/net.h"
#include "warden/pause.h"
#include "warden/warden.h"
#include "warden/warm.h"

enum { FLUSH_MS = 2000 };

static void end_calls(struct warden *w)
{
	struct call *next;

	for (struct call *c = w->calls; c; c = next) {
		next = c->next;
		call_end(c, "sandbox_ended");
	}
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

/* What cannot be removed is found by the next `cay` that looks after the dead. */
static void __attribute__((noreturn)) end_behind(struct warden *w)
{
	struct state s;
	struct err ignored = { 0 };
	bool open = open_state(w, &s) == 0;

	if (open)
		(void)state_save_trace(&s, w->spec.id);
	tell_final(w);
	(void)sched_yield(); /* who waits for it goes first */
	(void)ns_driver.destroy(&w->cell, &ignored);
	clients_say_destroyed(w);
	for (int i = 0; i < CELL_MOUNTS; i++) {
		fd_close(&w->uppers[i]);
		fd_close(&w->lowers[i]);
	}
	if (!open)
		_exit(1);
	(void)state_trim_ended(&s);
	(void)state_remove(&s, w->spec.id, w->lock_fd, &ignored);
	_exit(0);
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
	if (!w->alone)
		ns_driver.reap(&w->cell);
	end_calls(w);
	net_close(w);
	last_events(w);
	w->state = SANDBOX_GONE;
	if (w->final && w->final->client)
		end_behind(w);
	if (w->final)
		call_say_final(w->final);
	(void)ns_driver.destroy(&w->cell, &e);
	clients_say_destroyed(w);
	loop_stop(&w->loop);
}

/*
 * All that run inside descend from init, and who has lost its parent is given to one of those:
 * while init has no child there is nobody. A kernel that does not tell has not said so.
 */
static bool is_childless(pid_t init)
{
	auto_close int fd = FD_NONE;
	char path[64], first;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)init, (int)init);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &first, 1) == 0;
}

/* Its one command was all that ever ran, and has left nothing: a group that can be removed is
 * empty. So nobody has to be killed and waited for before the last look at the files. */
static bool is_alone(struct warden *w)
{
	const struct call *c = w->final;

	if (!c || !c->client || w->ncalls != 1 || w->last_call != 1 || w->net)
		return false;
	return c->group[0] ? cgroup_remove_leaf(&w->cell.cgroup, c->group) == 0
			   : is_childless(w->cell.pid);
}

void warden_end(struct warden *w, const char *reason)
{
	if (!sandbox_may_move(w->state, SANDBOX_ENDING))
		return;
	/* Frozen processes die all the same; init, stopped by a signal or not, must go on. */
	if (w->state == SANDBOX_PAUSED && w->cell.has_cgroup)
		(void)cgroup_freeze(&w->cell.cgroup, false, 0);
	warm_close(w);
	w->state = SANDBOX_ENDING;
	w->end_reason = reason;
	w->alone = is_alone(w);
	if (!w->alone)
		ns_driver.kill(&w->cell);
	loop_timer_set(&w->loop, &w->end_timer, 0, end_now);
}

static const char *or_env(const char *said, const char *name)
{
	return said ? said : getenv(name);
}

void warden_leave(struct warden *w)
{
	const char *program = or_env(w->program, WARDEN_ENV_PROGRAM);
	const char *id = or_env(w->spec.id, WARDEN_ENV_ID),
		   *dir = or_env(w->spec.state, "CAY_STATE");
	bool asked = false;

	for (struct client *c = w->clients; c; c = c->next)
		asked |= c->wants_destroyed || c->creator;
	if (!asked && program && id && dir) {
		/* What has outlived its time is not kept. */
		char *gone[] = { "cay", "settle", "--remove", (char *)id, NULL };
		char *argv[] = { "cay", "settle", (char *)id, NULL };
		char state[LIMIT_PATH + 16], *envp[] = { state, NULL };
		sigset_t none;

		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)snprintf(state, sizeof state, "CAY_STATE=%s", dir);
		/* Closes the lock, which is CLOEXEC: it is free for settle to take. */
		(void)execve(program, w->expired ? gone : argv, envp);
	}
	_exit(0);
}
