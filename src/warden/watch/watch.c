/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/fds.h"
#include "base/limits.h"
#include "sys/process/raw.h"
#include "sys/process/tracee.h"
#include "warden/watch/watch_ends.h"
#include "warden/watch/watch_exec.h"
#include "warden/watch/watch_pending.h"
#include "warden/watch/watch_rename.h"

enum { ANCESTORS = 64 }; /* most ancestors checked for a process that never exec'ed */

void watch_guard(struct watch *w, bool (*guard)(void *ctx, int tid), void *ctx)
{
	w->guard = guard;
	w->guard_ctx = ctx;
}

static bool passes_guard(struct watch *w, int tid)
{
	bool (*guard)(void *, int) = w->guard;

	w->guard = NULL;
	return !guard || guard(w->guard_ctx, tid);
}

/* No process is left. Processes without a known end are about to be reaped, and are polled. */
static void hang_up(struct watch_call *c)
{
	loop_del(c->watch->loop, &c->io);
	fds_discard(&c->listener, 1); /* init sent it, so its close may block */
	watch_settle(c);
}

void watch_refusals(struct watch *w, void (*refused)(void *ctx))
{
	w->refused = refused;
}

/* The filter lets only calls wait that ask for a new user namespace. */
static bool is_namespace(const struct seccomp_notif *n)
{
	return n->data.nr == SYS_unshare || n->data.nr == SYS_clone;
}

static void refuse_namespace(struct watch_call *c)
{
	struct watch *w = c->watch;

	if (listener_refuse(c->listener, &w->bufs, w->bufs.notif->id, EPERM) == 0 && w->refused)
		w->refused(c->ctx);
}

/* One per turn: RECV would block without a notification, and the loop polls for us. */
static void on_notified(struct watch_call *c)
{
	struct watch *w = c->watch;
	int r = listener_receive(c->listener, &w->bufs);

	if (r < 0) {
		if (r != -ENOENT && r != -EINTR)
			hang_up(c);
		return;
	}
	if (rename_is(w->bufs.notif))
		rename_begin(c);
	else if (is_namespace(w->bufs.notif))
		refuse_namespace(c);
	else if (passes_guard(w, (int)w->bufs.notif->pid))
		pending_begin(c);
	else
		(void)listener_refuse(c->listener, &w->bufs, w->bufs.notif->id, EPERM);
}

static void on_listener(struct loop_io *io, uint32_t events)
{
	struct watch_call *c = container_of(io, struct watch_call, io);

	if (events & EPOLLIN)
		on_notified(c);
	else
		hang_up(c);
}

int watch_call_new(struct watch *w, uint32_t call, uint64_t parent, int listener_fd,
		   void (*idle)(void *ctx), void *ctx, struct watch_call **ret)
{
	auto_close int listener = listener_fd;
	auto_free struct watch_call *c = calloc(1, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct watch_call){ .watch = w,
				  .call = call,
				  .parent = parent,
				  .listener = listener,
				  .idle = idle,
				  .ctx = ctx };
	r = loop_add(w->loop, &c->io, listener, EPOLLIN, on_listener);
	if (r < 0)
		return r;
	/* The task sleeps while we work and the reverse: one CPU is enough for both. */
	listener_sync_wake_up(listener);
	(void)TAKE_FD(listener);
	*ret = TAKE_PTR(c);
	return 0;
}

void watch_call_name(struct watch_call *c, uint32_t call, uint64_t parent)
{
	c->call = call;
	c->parent = parent;
}

void watch_call_free(struct watch_call *c)
{
	if (!c)
		return;
	pending_forget(c);
	rename_forget(c);
	while (c->procs)
		proc_drop(c->watch, c->procs);
	watch_gaps(c);
	loop_del(c->watch->loop, &c->io);
	fds_discard(&c->listener, 1); /* init sent it, so its close may block */
	free(c);
}

void watch_call_collect(struct watch_call *c)
{
	watch_collect(c->watch, c, 0);
}

void watch_call_kill(const struct watch_call *c, int sig)
{
	for (const struct proc *p = c->procs; p; p = p->call_next)
		if (p->pidfd >= 0)
			(void)raw_pidfd_signal(p->pidfd, sig);
}

void watch_call_finish(struct watch_call *c)
{
	c->told = true;
	while (c->procs) {
		struct proc *p = c->procs;
		int status = p->status;
		bool known = p->has_status ||
			     (p->pidfd >= 0 && proc_status(p->pidfd, p->pid, &status) == 0);

		proc_ended(p, known ? &status : NULL);
	}
}

void watch_reaped(struct watch *w, int inside_pid, int status)
{
	struct proc *p = proc_table_find_inside(&w->table, inside_pid);

	if (!p)
		return;
	if (p->parked_ns) {
		proc_ended(p, &status);
		return;
	}
	p->has_status = true;
	p->status = status;
}

uint32_t watch_call_of(const struct watch *w, int outside_pid)
{
	if (w->table.size == 0) /* no exec was seen */
		return 0;
	for (int i = 0; i < ANCESTORS && outside_pid > 1; i++) {
		const struct proc *p = proc_table_find(&w->table, outside_pid);

		if (p)
			return p->call->call;
		outside_pid = proc_parent(FD_NONE, outside_pid);
	}
	return 0;
}

/* Each process takes a descriptor. Keep half of them for everything else. */
static uint32_t most_processes(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur / 2 > LIMIT_PROCESSES)
		return LIMIT_PROCESSES;
	return (uint32_t)(l.rlim_cur / 2);
}

int watch_move(struct watch *w, int root_fd)
{
	char name[LIMIT_PATH], *prefix;
	int r = exec_name(root_fd, STR_NONE, name);

	if (r < 0)
		return r;
	prefix = strdup(strcmp(name, "/") == 0 ? "" : name);
	if (!prefix)
		return -ENOMEM;
	free(w->prefix);
	w->prefix = prefix;
	w->root_fd = root_fd;
	return 0;
}

static void on_child(struct loop_io *io, uint32_t events)
{
	struct watch *w = container_of(io, struct watch, child_io);

	(void)events;
	tracee_signal_clear(w->child_fd);
	pending_poll(w);
}

static int watch_init(struct watch *w)
{
	int r = listener_bufs_init(&w->bufs);

	if (r < 0)
		return r;
	w->child_fd = tracee_signal_fd();
	if (w->child_fd < 0)
		return w->child_fd;
	r = loop_add(w->loop, &w->child_io, w->child_fd, EPOLLIN, on_child);
	return r < 0 ? r : watch_move(w, w->root_fd);
}

int watch_new(struct loop *l, struct trace *t, int root_fd, struct watch **ret)
{
	struct watch *w = calloc(1, sizeof *w);
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct watch){ .loop = l,
			     .trace = t,
			     .root_fd = root_fd,
			     .view = PROC_VIEW_INIT,
			     .table.max = most_processes(),
			     .parked_end = &w->parked,
			     .probe_fd = FD_NONE,
			     .child_fd = FD_NONE,
			     .child_io.fd = FD_NONE };
	r = watch_init(w);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void watch_reap(struct watch *w)
{
	pending_reap(w);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	loop_timer_stop(w->loop, &w->parked_timer);
	loop_timer_stop(w->loop, &w->young_timer);
	pending_done(w);
	rename_done(w);
	loop_del(w->loop, &w->child_io);
	fd_close(&w->child_fd);
	proc_view_done(&w->view);
	fd_close(&w->probe_fd);
	free(w->prefix);
	listener_bufs_done(&w->bufs);
	free(w);
}
