/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_ends.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"

#define PARK_NS	 (100 * NS_PER_MS)
#define YOUNG_NS (10 * NS_PER_MS)

static void write_gap(struct watch_call *c, const char *what, uint64_t *count)
{
	struct trace *t = c->watch->trace;

	if (*count == 0)
		return;
	trace_begin(t, "trace.gap", c->call, c->parent);
	trace_text(t, "lost", str_of(what));
	trace_num(t, "count", (int64_t)*count);
	if (trace_end(t) == 0)
		*count = 0;
}

void watch_gaps(struct watch_call *c)
{
	write_gap(c, "process.exec", &c->lost_execs);
	write_gap(c, "process.exit", &c->lost_exits);
}

void watch_settle(struct watch_call *c)
{
	if (c->listener >= 0 || c->procs || c->told)
		return;
	c->told = true;
	watch_gaps(c);
	c->idle(c->ctx);
}

static void young_drop(struct proc *p)
{
	if (!p->young_ns)
		return;
	*p->young_at = p->young_next;
	if (p->young_next)
		p->young_next->young_at = p->young_at;
	p->young_ns = 0;
}

void proc_drop(struct watch *w, struct proc *p)
{
	young_drop(p);
	if (p->parked_ns) {
		*p->parked_at = p->parked_next;
		if (p->parked_next)
			p->parked_next->parked_at = p->parked_at;
		else
			w->parked_end = p->parked_at;
	}
	*p->call_at = p->call_next;
	if (p->call_next)
		p->call_next->call_at = p->call_at;
	proc_table_del(&w->table, p);
	loop_del(w->loop, &p->io);
	fd_close(&p->pidfd);
	free(p);
}

void proc_ended(struct proc *p, const int *status)
{
	struct watch_call *c = p->call;
	struct trace *t = c->watch->trace;

	trace_begin(t, "process.exit", c->call, p->exec_event ? p->exec_event : c->parent);
	trace_num(t, "pid", p->inside);
	if (!status)
		trace_bool(t, "unknown", true);
	else if (WIFSIGNALED(*status))
		trace_num(t, "signal", WTERMSIG(*status));
	else
		trace_num(t, "code", WEXITSTATUS(*status));
	if (trace_end(t) < 0)
		c->lost_exits++;
	proc_drop(c->watch, p);
	watch_settle(c);
}

static void on_parked(struct loop_timer *timer)
{
	struct watch *w = container_of(timer, struct watch, parked_timer);
	uint64_t now = clock_mono_ns();

	for (struct proc *p; (p = w->parked) && p->parked_ns + PARK_NS <= now;) {
		w->parked = p->parked_next; /* like proc_drop, for the head of the list */
		proc_ended(p, NULL);
	}
	if (w->parked)
		loop_timer_set(w->loop, &w->parked_timer, w->parked->parked_ns + PARK_NS - now,
			       on_parked);
}

static void proc_park(struct watch *w, struct proc *p)
{
	young_drop(p);
	loop_del(w->loop, &p->io);
	fd_close(&p->pidfd);
	p->parked_ns = clock_mono_ns();
	p->parked_at = w->parked_end;
	*w->parked_end = p;
	w->parked_end = &p->parked_next;
	if (w->parked == p)
		loop_timer_set(w->loop, &w->parked_timer, PARK_NS, on_parked);
}

static void keep_probe(struct proc *p)
{
	struct watch *w = p->call->watch;

	if (w->remembers || w->forgets || w->probe_fd >= 0)
		return;
	loop_del(w->loop, &p->io);
	w->probe_fd = TAKE_FD(p->pidfd);
}

static bool kernel_remembers(struct watch *w)
{
	int status;

	if (w->probe_fd >= 0 && proc_is_gone(w->probe_fd)) {
		w->remembers = proc_was_reaped(w->probe_fd, &status);
		w->forgets = !w->remembers;
		fd_close(&w->probe_fd);
	}
	return w->remembers;
}

void proc_gone(struct proc *p)
{
	int status = p->status;

	if (proc_was_reaped(p->pidfd, &status)) {
		p->call->watch->remembers = true;
		proc_ended(p, &status);
	} else if (proc_status(p->pidfd, p->pid, &status) == 0 || p->has_status) {
		keep_probe(p);
		proc_ended(p, &status);
	} else {
		proc_park(p->call->watch, p);
	}
}

static void on_pidfd(struct loop_io *io, uint32_t events)
{
	(void)events;
	proc_gone(container_of(io, struct proc, io));
}

/* Await its end from now on. If that fails, it stays young. */
static void grow_up(struct proc *p)
{
	if (loop_add(p->call->watch->loop, &p->io, p->pidfd, EPOLLIN, on_pidfd) == 0)
		young_drop(p);
}

void watch_collect(struct watch *w, const struct watch_call *only, uint64_t before_ns)
{
	struct proc *next;

	for (struct proc *p = w->young; p; p = next) {
		int status;

		next = p->young_next;
		if (only && p->call != only)
			continue;
		if (proc_was_reaped(p->pidfd, &status))
			proc_ended(p, &status);
		else if (p->young_ns <= before_ns)
			grow_up(p);
	}
}

static void on_young(struct loop_timer *timer)
{
	struct watch *w = container_of(timer, struct watch, young_timer);

	watch_collect(w, NULL, clock_mono_ns() - YOUNG_NS);
	if (w->young)
		loop_timer_set(w->loop, &w->young_timer, YOUNG_NS, on_young);
}

static void be_young(struct watch *w, struct proc *p)
{
	p->young_ns = clock_mono_ns();
	p->young_next = w->young;
	p->young_at = &w->young;
	if (w->young)
		w->young->young_at = &p->young_next;
	w->young = p;
	if (w->young_timer.at_ns == 0)
		loop_timer_set(w->loop, &w->young_timer, YOUNG_NS, on_young);
}

int proc_await(struct watch *w, struct proc *p)
{
	if (!kernel_remembers(w))
		return loop_add(w->loop, &p->io, p->pidfd, EPOLLIN, on_pidfd);
	be_young(w, p);
	return 0;
}
