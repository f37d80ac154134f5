/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For fuzz_exec_watch.c: the kernel, the loop and the trace as the watch of execs sees them. All
 * that can fail does so once after `fail_next` was set.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "sys/filter/listener.h"
#include "sys/process/tracee.h"
#include "trace/log.h"
#include "warden/watch/watch.h"
#include "warden/watch/watch_ends.h"
#include "warden/watch/watch_exec.h"
#include "warden/watch/watch_proc.h"

enum { TASKS = 24, CALLS = 3, SOURCES = 128, TIMERS = 4, FIRST = 100 };
/* Numbers that no descriptor of this process has: closing them does nothing. */
enum { FD_LISTENER = 1 << 20, FD_PROCESS = 1 << 21, FD_CHILD = 1 << 22 };

enum state {
	FREE,
	RUNS,
	ASKS,	  /* an exec, not received */
	RECEIVED, /* not answered */
	GOES,	  /* on with the exec */
	EXECED,	  /* stopped with a new program */
	FAILED,	  /* stopped without */
	DEAD,	  /* to be reaped by who holds it */
};

struct task {
	enum state state;
	int leader; /* index; its own where it is one */
	int call;
	uint64_t id;
	bool held, polled, debugged;
	bool owes; /* its new program runs, and there must be an event */
	unsigned generation;
};

static struct {
	struct task tasks[TASKS];
	struct watch *watch;
	struct watch_call *calls[CALLS];
	bool hung_up[CALLS];
	struct loop_io *sources[SOURCES];
	int nsources;
	struct loop_timer *timers[TIMERS];
	uint64_t now, next_id, seq;
	bool fail_next; /* the next thing that may fail does */
	bool exec_event, certain;
	int64_t event_pid;
} k;

static bool fails(void)
{
	bool f = k.fail_next;

	k.fail_next = false;
	return f;
}

static struct task *task_at(int number)
{
	FUZZ_CHECK(number >= FIRST && number < FIRST + TASKS);
	return &k.tasks[number - FIRST];
}

static int number_of(const struct task *t)
{
	return FIRST + (int)(t - k.tasks);
}

static struct task *task_of_id(uint64_t id, enum state state)
{
	for (int i = 0; i < TASKS; i++)
		if (k.tasks[i].state == state && k.tasks[i].id == id)
			return &k.tasks[i];
	return NULL;
}

/* --- clock, loop --- */

uint64_t clock_mono_ns(void)
{
	return k.now;
}

int loop_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	     void (*fn)(struct loop_io *, uint32_t))
{
	(void)l;
	if (fails())
		return -ENOSPC;
	FUZZ_CHECK(k.nsources < SOURCES);
	io->fd = fd;
	io->events = events;
	io->fn = fn;
	k.sources[k.nsources++] = io;
	return 0;
}

int loop_mod(struct loop *l, struct loop_io *io, uint32_t events)
{
	(void)l;
	io->events = events;
	return 0;
}

void loop_del(struct loop *l, struct loop_io *io)
{
	(void)l;
	for (int i = 0; i < k.nsources; i++)
		if (k.sources[i] == io) {
			k.sources[i] = k.sources[--k.nsources];
			io->fd = FD_NONE;
			return;
		}
}

void loop_timer_stop(struct loop *l, struct loop_timer *t)
{
	(void)l;
	t->at_ns = 0;
	for (int i = 0; i < TIMERS; i++)
		if (k.timers[i] == t)
			k.timers[i] = NULL;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns,
		    void (*fn)(struct loop_timer *))
{
	loop_timer_stop(l, t);
	t->at_ns = k.now + delay_ns;
	t->fn = fn;
	for (int i = 0; i < TIMERS; i++)
		if (!k.timers[i]) {
			k.timers[i] = t;
			return;
		}
	FUZZ_CHECK(false);
}

static void run_timers(uint64_t passed_ns)
{
	k.now += passed_ns;
	for (int i = 0; i < TIMERS; i++) {
		struct loop_timer *t = k.timers[i];

		if (!t || t->at_ns > k.now)
			continue;
		k.timers[i] = NULL;
		t->at_ns = 0;
		t->fn(t);
	}
}

/* --- trace --- */

uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent)
{
	(void)t;
	(void)call;
	(void)parent;
	k.exec_event = strcmp(kind, "process.exec") == 0;
	k.certain = true;
	return ++k.seq;
}

void trace_text(struct trace *t, const char *key, struct str value)
{
	(void)t;
	(void)key;
	FUZZ_CHECK(memchr(value.p, '\0', value.n) == NULL);
}

void trace_num(struct trace *t, const char *key, int64_t value)
{
	(void)t;
	if (strcmp(key, "pid") == 0)
		k.event_pid = value;
}

void trace_bool(struct trace *t, const char *key, bool value)
{
	(void)t;
	if (strcmp(key, "certain") == 0)
		k.certain = value;
}

void trace_array(struct trace *t, const char *key)
{
	(void)t;
	(void)key;
}

void trace_item(struct trace *t, struct str value)
{
	(void)t;
	(void)value;
}

void trace_array_end(struct trace *t)
{
	(void)t;
}

int trace_end(struct trace *t)
{
	struct task *p;

	(void)t;
	if (k.exec_event) {
		p = task_at((int)k.event_pid);
		/* Nothing that has not happened is certain; and nothing is told twice. */
		FUZZ_CHECK(!k.certain || p->owes);
		if (k.certain)
			p->owes = false;
	}
	return fails() ? -E2BIG : 0;
}

/* --- the listener --- */

int listener_bufs_init(struct listener_bufs *b)
{
	b->notif = calloc(1, sizeof *b->notif);
	b->resp = calloc(1, sizeof *b->resp);
	return b->notif && b->resp ? 0 : -ENOMEM;
}

void listener_bufs_done(struct listener_bufs *b)
{
	free(b->notif);
	free(b->resp);
}

void listener_sync_wake_up(int fd)
{
	(void)fd;
}

int listener_receive(int fd, struct listener_bufs *b)
{
	int call = fd - FD_LISTENER;

	FUZZ_CHECK(call >= 0 && call < CALLS);
	for (int i = 0; i < TASKS; i++) {
		struct task *t = &k.tasks[i];

		if (t->state != ASKS || t->call != call)
			continue;
		t->state = RECEIVED;
		*b->notif = (struct seccomp_notif){ .id = t->id, .pid = (uint32_t)number_of(t) };
		return 0;
	}
	return -ENOENT;
}

bool listener_is_valid(int fd, uint64_t id)
{
	FUZZ_CHECK(fd >= FD_LISTENER);
	return task_of_id(id, RECEIVED);
}

int listener_continue(int fd, struct listener_bufs *b, uint64_t id)
{
	struct task *t = task_of_id(id, RECEIVED);

	(void)b;
	FUZZ_CHECK(fd >= FD_LISTENER);
	/* An answer to a call that was answered would find another's id: ids are never used again.
	 */
	FUZZ_CHECK(!task_of_id(id, GOES) && !task_of_id(id, ASKS));
	if (!t)
		return -ENOENT;
	t->state = GOES;
	t->polled = false;
	return 0;
}

int listener_refuse(int fd, struct listener_bufs *b, uint64_t id, int err)
{
	struct task *t = task_of_id(id, RECEIVED);

	(void)b;
	FUZZ_CHECK(fd >= FD_LISTENER && err > 0);
	if (!t)
		return -ENOENT;
	FUZZ_CHECK(!t->held);
	t->state = RUNS;
	return 0;
}

/* --- holding --- */

static void kill_process(int leader);

static bool is_of(const struct task *t, int leader)
{
	return t->state != FREE && t->leader == leader;
}

int tracee_hold(int tid)
{
	struct task *t = task_at(tid);

	if (t->state == FREE || t->state == DEAD)
		return -ESRCH;
	if (t->debugged)
		return -EPERM;
	if (fails())
		return -EAGAIN;
	for (int i = 0; i < TASKS; i++)
		FUZZ_CHECK(!is_of(&k.tasks[i], t->leader) || !k.tasks[i].held);
	t->held = true;
	return 0;
}

static void let_go(struct task *t, enum state next)
{
	t->held = false;
	t->state = next;
}

static enum tracee_state poll_number(int number)
{
	struct task *t = task_at(number);

	if (!t->held)
		return TRACEE_GONE;
	if (t->state == DEAD) {
		let_go(t, FREE);
		return TRACEE_GONE;
	}
	if (t->state == EXECED && !t->polled) {
		t->polled = true;
		return TRACEE_EXECED;
	}
	if (t->state != FAILED)
		return TRACEE_RUNS;
	if (fails()) {
		kill_process(t->leader);
		return TRACEE_RUNS;
	}
	let_go(t, RUNS);
	return TRACEE_RETURNED;
}

enum tracee_state tracee_poll(int tid, int pid)
{
	enum tracee_state s = poll_number(tid);

	return s == TRACEE_GONE && tid != pid ? poll_number(pid) : s;
}

int tracee_stack(int pid, uint64_t *ret_sp)
{
	FUZZ_CHECK(task_at(pid)->state == EXECED);
	*ret_sp = 4096;
	return 0;
}

int tracee_release(int pid)
{
	struct task *t = task_at(pid);

	FUZZ_CHECK(t->held && (t->state == EXECED || t->state == DEAD));
	if (t->state == EXECED && fails())
		kill_process(t->leader);
	if (t->state == DEAD)
		return -ESRCH;
	let_go(t, RUNS);
	return 0;
}

void tracee_reap(int tid, int pid)
{
	FUZZ_CHECK(tid >= FIRST && pid >= FIRST);
}

int tracee_signal_fd(void)
{
	return FD_CHILD;
}

void tracee_signal_clear(int fd)
{
	FUZZ_CHECK(fd == FD_CHILD);
}

/* --- processes --- */

void proc_view_done(struct proc_view *v)
{
	(void)v;
}

void proc_view_learn(struct proc_view *v, int pidfd)
{
	(void)v;
	(void)pidfd;
}

static struct task *task_of_pidfd(int pidfd)
{
	struct task *t = &k.tasks[(pidfd - FD_PROCESS) % TASKS];

	return t->generation == (unsigned)(pidfd - FD_PROCESS) / TASKS ? t : NULL;
}

int proc_open(int tid, int *ret_pid)
{
	struct task *t = task_at(tid);

	*ret_pid = tid;
	if (t->state == FREE)
		return -ESRCH;
	*ret_pid = FIRST + t->leader;
	if (fails())
		return -EMFILE;
	return FD_PROCESS + (int)(k.tasks[t->leader].generation * TASKS) + t->leader;
}

bool proc_is_gone(int pidfd)
{
	struct task *t = task_of_pidfd(pidfd);

	return !t || t->state == FREE;
}

int proc_inside(const struct proc_view *v, int pid)
{
	(void)v;
	return pid;
}

int proc_parent(int pidfd, int pid)
{
	(void)pidfd;
	return pid > FIRST ? pid - 1 : 0;
}

bool proc_was_reaped(int pidfd, int *ret_status)
{
	*ret_status = 0;
	return proc_is_gone(pidfd) && !fails();
}

int proc_status(int pidfd, int pid, int *ret_status)
{
	(void)pid;
	*ret_status = 9;
	return proc_is_gone(pidfd) && !fails() ? 0 : -ENODATA;
}

/* --- what an exec is asked for --- */

void exec_req_of(const struct seccomp_notif *n, struct exec_req *ret)
{
	*ret = (struct exec_req){ .tid = (int)n->pid, .path = 1, .argv = 1 };
}

void exec_mem_init(struct exec_mem *m, const struct exec_req *q)
{
	m->tid = q->tid;
}

int exec_read_path(struct exec_mem *m, const struct exec_req *q, char path[LIMIT_PATH])
{
	(void)m;
	(void)q;
	path[0] = '\0';
	if (fails())
		return -EFAULT;
	memcpy(path, "/p", 3);
	return 0;
}

void exec_read_args(struct exec_mem *m, const struct exec_req *q, struct exec_args *ret)
{
	(void)m;
	(void)q;
	*ret = (struct exec_args){ .argc = 1, .len = 2, .text = "a" };
}

bool exec_only_asks(const struct exec_req *q)
{
	(void)q;
	return fails();
}

int exec_find(int root_fd, struct str prefix, const struct exec_req *q, char path[LIMIT_PATH],
	      int *ret_fd)
{
	(void)root_fd;
	(void)prefix;
	(void)q;
	(void)path;
	*ret_fd = FD_NONE;
	return fails() ? -ENOENT : 0;
}

/* Of renames, which wait at the same listener; here there are only execs. */
int exec_open(int root_fd, struct str prefix, int tid, int dirfd, const char *given)
{
	(void)root_fd;
	(void)prefix;
	(void)tid;
	(void)dirfd;
	(void)given;
	return -ENOENT;
}

int exec_name(int fd, struct str prefix, char name[LIMIT_PATH])
{
	(void)fd;
	(void)prefix;
	memcpy(name, "/", 2);
	return 0;
}

int exec_program(int pid, struct str prefix, char name[LIMIT_PATH])
{
	(void)prefix;
	FUZZ_CHECK(task_at(pid)->state == EXECED && task_at(pid)->held);
	memcpy(name, "/q", 3);
	return 0;
}

int exec_image(struct exec_req *q)
{
	FUZZ_CHECK(task_at(q->tid)->state == EXECED);
	q->path = q->argv = fails() ? 0 : 1;
	return 0;
}
