/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence of an exec:
 *   1. The task waits for the listener. The warden opens its pidfd and holds the task (tracee.h).
 *   2. The warden answers CONTINUE. The kernel reads path and arguments and does the exec.
 *   3. The task stops. If the exec failed, the warden releases it and writes nothing.
 *   4. If the exec succeeded, the warden reads the program, the arguments and the path that was
 *      asked for from the new image, of which nothing has run yet. Then it releases the task.
 * So the warden writes what the kernel did. Changes to memory or files by the old image or its
 * siblings have no effect, and every program that runs has an event.
 *
 * A task that a debugger inside traces cannot be held. For such an exec the warden reads path and
 * arguments before its answer, as they are at that moment, and writes "certain":false. It answers
 * an exec of a missing program with the error itself: after CONTINUE the program could be there.
 *
 * The warden holds one exec per process at a time. An exec of a second thread waits for its turn:
 * otherwise the kernel would block both while the warden waits to hold one and has yet to reap the
 * other.
 */
#include "warden/watch/watch_pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys/filter/listener.h"
#include "sys/process/tracee.h"
#include "warden/watch/watch_exec.h"

enum { PENDING_MOST = 256 };

enum pending_state {
	PENDING_WAITS, /* waits for another exec of the same process; not answered */
	PENDING_HELD,
	PENDING_ENDING, /* killed when it was released; to be reaped */
};

struct pending {
	struct pending *next;
	struct watch_call *call; /* NULL: write no event */
	enum pending_state state;
	uint64_t id; /* id of the notification */
	struct exec_req req;
	int pid, pidfd; /* FD_NONE if the table has the process */
};

/* The data of an event. */
struct seen {
	int pid, *pidfd;
	struct proc *known;
	int inside, ppid;
	bool certain;
	char path[LIMIT_PATH], asked[LIMIT_PATH];
	struct exec_args args;
};

/* --- events --- */

static struct proc *find_live(struct watch *w, int pid)
{
	struct proc *p = proc_table_find(&w->table, pid);

	/* The pid may be reused already, while the end of the first process is not handled yet. */
	if (p && proc_is_gone(p->pidfd)) {
		proc_gone(p);
		return NULL;
	}
	return p;
}

static int inside_of(struct watch *w, int pid)
{
	struct proc *p = proc_table_find(&w->table, pid);

	return p ? p->inside : proc_inside(&w->view, pid);
}

/* Call while the task is stopped: later it may be gone, and its pid reused. */
static void identify(struct watch *w, struct pending *p, struct seen *s)
{
	s->pid = p->pid;
	s->pidfd = &p->pidfd;
	s->known = find_live(w, p->pid);
	proc_view_learn(&w->view, p->pidfd);
	s->inside = s->known ? s->known->inside : proc_inside(&w->view, p->pid);
	s->ppid = inside_of(w, proc_parent(s->known ? s->known->pidfd : p->pidfd, p->pid));
}

/* Takes the pidfd on success. */
static int proc_add(struct watch_call *c, const struct seen *s, struct proc **ret)
{
	struct watch *w = c->watch;
	auto_free struct proc *p = NULL;
	int r;

	if (*s->pidfd < 0)
		return *s->pidfd;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	*p = (struct proc){ .call = c, .pidfd = *s->pidfd, .pid = s->pid, .inside = s->inside };
	r = proc_table_add(&w->table, p);
	if (r < 0)
		return r;
	r = proc_await(w, p);
	if (r < 0) {
		proc_table_del(&w->table, p);
		return r;
	}
	p->call_next = c->procs;
	p->call_at = &c->procs;
	if (c->procs)
		c->procs->call_at = &p->call_next;
	c->procs = p;
	*s->pidfd = FD_NONE;
	*ret = TAKE_PTR(p);
	return 0;
}

static uint64_t write_exec(struct watch_call *c, const struct seen *s)
{
	struct trace *t = c->watch->trace;
	uint64_t seq = trace_begin(t, "process.exec", c->call, c->parent);
	const char *arg = s->args.text;

	trace_num(t, "pid", s->inside);
	trace_num(t, "ppid", s->ppid);
	trace_text(t, "path", str_of(s->path));
	if (s->asked[0] && strcmp(s->asked, s->path) != 0)
		trace_text(t, "asked", str_of(s->asked));
	if (!s->certain)
		trace_bool(t, "certain", false);
	trace_array(t, "argv");
	for (unsigned i = 0; i < s->args.argc; i++) {
		struct str item = str_of(arg);

		trace_item(t, item);
		arg += item.n + 1;
	}
	trace_array_end(t);
	if (s->args.cut)
		trace_num(t, "argv_cut", s->args.cut);
	return trace_end(t) < 0 ? 0 : seq;
}

static void report(struct watch_call *c, const struct seen *s)
{
	struct proc *p = s->known;
	uint64_t seq = write_exec(c, s);

	if (seq == 0)
		c->lost_execs++;
	if (p || proc_add(c, s, &p) == 0) {
		p->exec_event = seq ? seq : p->exec_event;
		watch_gaps(c);
	} else {
		c->lost_exits++;
	}
}

/* --- a held exec --- */

/* Read a task that is stopped before the first instruction of its new program. */
static void read_image(struct watch *w, int pid, struct seen *s)
{
	struct exec_mem mem __attribute__((uninitialized));
	struct exec_req q = { .tid = pid };

	s->args.argc = s->args.cut = 0;
	s->asked[0] = '\0';
	s->certain = exec_program(pid, str_of(w->prefix), s->path) == 0 && exec_image(&q) == 0;
	if (!q.argv) {
		s->args.cut = 1; /* a program of another ABI, which the filter kills */
	} else {
		exec_mem_init(&mem, &q);
		(void)exec_read_path(&mem, &q, s->asked);
		exec_read_args(&mem, &q, &s->args);
	}
	if (s->path[0] == '\0')
		memcpy(s->path, s->asked, sizeof s->path);
}

/* False if the task was killed and must still be reaped. */
static bool on_execed(struct watch *w, struct pending *p)
{
	struct seen s __attribute__((uninitialized)); /* most of it is never used */
	bool released;

	if (!p->call)
		return tracee_release(p->pid) == 0;
	identify(w, p, &s);
	read_image(w, p->pid, &s);
	released = tracee_release(p->pid) == 0;
	report(p->call, &s);
	return released;
}

/* --- an exec that could not be held --- */

static int look_before(struct watch *w, const struct exec_req *q, struct seen *s)
{
	struct exec_mem mem __attribute__((uninitialized));
	struct str prefix = str_of(w->prefix);
	auto_close int file = FD_NONE;
	int r;

	s->certain = false;
	exec_mem_init(&mem, q);
	r = exec_read_path(&mem, q, s->path);
	if (r == -ENAMETOOLONG)
		return r;
	/* Memory that only the task itself can read (EFAULT) may contain any path. */
	r = r < 0 ? 0 : exec_find(w->root_fd, prefix, q, s->path, &file);
	if (r < 0)
		return r;
	if (file >= 0 && exec_name(file, prefix, s->asked) == 0)
		memcpy(s->path, s->asked, sizeof s->path);
	s->asked[0] = '\0';
	exec_read_args(&mem, q, &s->args);
	return 0;
}

static void answer_unheld(struct watch *w, struct pending *p)
{
	struct seen s __attribute__((uninitialized));
	struct watch_call *c = p->call;
	int r;

	if (exec_only_asks(&p->req)) {
		(void)listener_continue(c->listener, &w->bufs, p->id);
		return;
	}
	r = look_before(w, &p->req, &s);
	if (r < 0) {
		(void)listener_refuse(c->listener, &w->bufs, p->id, -r);
		return;
	}
	identify(w, p, &s);
	/* If the task was killed, we may have read another task that reused its pid. */
	if (listener_continue(c->listener, &w->bufs, p->id) == 0)
		report(c, &s);
}

/* --- the list --- */

static void pending_free(struct watch *w, struct pending *p)
{
	struct pending **at = &w->pending;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	w->npending--;
	fd_close(&p->pidfd);
	free(p);
}

/* False if there is nothing left to wait for. */
static bool start(struct watch *w, struct pending *p)
{
	struct watch_call *c = p->call;

	if (!c || !listener_is_valid(c->listener, p->id))
		return false;
	if (tracee_hold(p->req.tid) < 0) {
		answer_unheld(w, p);
		return false;
	}
	p->state = PENDING_HELD;
	/* If the task was killed meanwhile, the pid may be reused: release it without an event. */
	if (listener_continue(c->listener, &w->bufs, p->id) < 0)
		p->call = NULL;
	return true;
}

/* The oldest exec of the process, which is the held one. */
static struct pending *of_process(struct watch *w, int pid)
{
	struct pending *found = NULL;

	for (struct pending *p = w->pending; p; p = p->next)
		if (p->pid == pid)
			found = p;
	return found;
}

/* An exec has ended: start the next one of the same process. */
static void finish(struct watch *w, struct pending *p)
{
	int pid = p->pid;

	pending_free(w, p);
	while ((p = of_process(w, pid)) && !start(w, p))
		pending_free(w, p);
}

/* Frees p if it has ended. */
static void poll_one(struct watch *w, struct pending *p)
{
	enum tracee_state s = tracee_poll(p->req.tid, p->pid);

	if (s == TRACEE_RUNS)
		return;
	if (s == TRACEE_EXECED && !on_execed(w, p)) {
		p->state = PENDING_ENDING;
		p->call = NULL;
		return;
	}
	finish(w, p);
}

void pending_poll(struct watch *w)
{
	/* The newest is first. poll_one() may also free newer entries, which come before p. */
	for (struct pending *p = w->pending, *next; p; p = next) {
		next = p->next;
		if (p->state != PENDING_WAITS)
			poll_one(w, p);
	}
}

static void find_process(struct watch *w, struct pending *p)
{
	int tid = p->req.tid;

	p->pid = tid;
	if (find_live(w, tid))
		return;
	p->pidfd = proc_open(tid, &p->pid);
	if (p->pid != tid && find_live(w, p->pid))
		fd_close(&p->pidfd);
}

static void begin_unlisted(struct watch_call *c, const struct pending *from)
{
	struct pending p = *from;

	find_process(c->watch, &p);
	answer_unheld(c->watch, &p);
	fd_close(&p.pidfd);
}

/*
 * A pending exec may hold a descriptor, like each process of the table. The table may use half of
 * the warden's descriptors, and pending execs an eighth: calls and clients need the rest.
 */
static bool has_room(const struct watch *w)
{
	return w->npending < PENDING_MOST && w->npending < w->table.max / 4;
}

void pending_begin(struct watch_call *c)
{
	struct watch *w = c->watch;
	struct pending from = { .call = c, .id = w->bufs.notif->id, .pidfd = FD_NONE }, *p = NULL;

	exec_req_of(w->bufs.notif, &from.req);
	if (has_room(w))
		p = malloc(sizeof *p);
	if (!p) {
		begin_unlisted(c, &from);
		return;
	}
	*p = from;
	find_process(w, p);
	p->next = w->pending;
	w->pending = p;
	w->npending++;
	if (of_process(w, p->pid) == p && !start(w, p))
		pending_free(w, p);
}

void pending_forget(struct watch_call *c)
{
	for (struct pending *p = c->watch->pending; p; p = p->next)
		if (p->call == c)
			p->call = NULL;
}

void pending_reap(struct watch *w)
{
	while (w->pending) {
		if (w->pending->state != PENDING_WAITS)
			tracee_reap(w->pending->req.tid, w->pending->pid);
		pending_free(w, w->pending);
	}
}

void pending_done(struct watch *w)
{
	while (w->pending)
		pending_free(w, w->pending);
}
