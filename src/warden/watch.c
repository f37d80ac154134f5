/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exec, in order: the listener becomes readable; path and arguments are read from the
 * task, the program is looked up, the task is identified by pidfd; the answer CONTINUE
 * proves that the task waited all the while (ENOENT: it was killed, and what was read may
 * be of another that got its number; it is dropped); the event is written while the task
 * already runs on. What the task could take with it by ending at once (parent, pid inside,
 * an unlinked program) is therefore asked before the answer, the rest after it.
 *
 * An exec that cannot succeed because there is no such program makes no event: a search
 * along PATH tries many.
 */
#include "warden/watch.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "sys/raw.h"
#include "warden/watch_ends.h"
#include "warden/watch_exec.h"

/* musl has them as int, glibc as unsigned long; the kernel takes 32 bits. */
#define IOCTL_RECV ((int)SECCOMP_IOCTL_NOTIF_RECV)
#define IOCTL_SEND ((int)SECCOMP_IOCTL_NOTIF_SEND)
/* Linux 6.6; newer than the headers that we build with. */
#define IOCTL_SET_FLAGS	  ((int)_IOW('!', 4, uint64_t))
#define FLAG_SYNC_WAKE_UP 1ull

enum { ANCESTORS = 64 }; /* looked at to attribute a process that never exec'ed */

/* An exec that waits, as far as it is known. */
struct seen {
	struct exec_req req;
	enum exec_found found;
	int file_fd, pidfd;
	struct proc *known;
	int pid, inside, ppid;
	char path[LIMIT_PATH];
	struct exec_args args;
};

static int proc_add(struct watch_call *c, const struct seen *s, struct proc **ret)
{
	struct watch *w = c->watch;
	auto_free struct proc *p = NULL;
	int r;

	if (s->pidfd < 0)
		return s->pidfd;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	*p = (struct proc){ .call = c, .pidfd = s->pidfd, .pid = s->pid, .inside = s->inside };
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
	*ret = TAKE_PTR(p);
	return 0;
}

static struct proc *find_live(struct watch *w, int pid)
{
	struct proc *p = proc_table_find(&w->table, pid);

	/* The number may be another's already while the end of the first one waits to be seen. */
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

static void identify(struct watch *w, struct seen *s)
{
	int tid = s->req.tid;

	s->pid = tid;
	s->known = find_live(w, tid);
	if (!s->known) {
		s->pidfd = proc_open(tid, &s->pid);
		if (s->pid != tid)
			s->known = find_live(w, s->pid);
	}
	proc_view_learn(&w->view, s->pidfd);
	s->inside = s->known ? s->known->inside : proc_inside(&w->view, s->pid);
	s->ppid = inside_of(w, proc_parent(s->known ? s->known->pidfd : s->pidfd, s->pid));
}

/* All that has to be asked while the task stands still. */
static void look(struct watch *w, struct seen *s)
{
	struct exec_mem mem __attribute__((uninitialized));
	int r;

	exec_mem_init(&mem, &s->req);
	r = exec_read_path(&mem, &s->req, s->path);
	if (r == -EFAULT || r == -ENAMETOOLONG) {
		s->found = EXEC_MISS;
		return;
	}
	s->found = r < 0 ? EXEC_UNSURE
			 : exec_find(w->root_fd, str_of(w->prefix), &s->req, s->path, &s->file_fd);
	if (s->found == EXEC_MISS)
		return;
	exec_read_args(&mem, &s->req, &s->args);
	identify(w, s);
}

static uint64_t write_exec(struct watch_call *c, const struct seen *s)
{
	struct trace *t = c->watch->trace;
	uint64_t seq = trace_begin(t, "process.exec", c->call, c->parent);
	const char *arg = s->args.text;

	trace_num(t, "pid", s->inside);
	trace_num(t, "ppid", s->ppid);
	trace_text(t, "path", str_of(s->path));
	if (s->found == EXEC_UNSURE)
		trace_bool(t, "unresolved", true);
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

static void report(struct watch_call *c, struct seen *s)
{
	struct proc *p = s->known;
	uint64_t seq;

	if (s->file_fd >= 0) {
		char name[LIMIT_PATH];

		if (exec_name(s->file_fd, str_of(c->watch->prefix), name) == 0)
			memcpy(s->path, name, sizeof name);
	}
	seq = write_exec(c, s);
	if (seq == 0)
		c->lost_execs++;
	if (p || proc_add(c, s, &p) == 0) {
		if (!s->known)
			s->pidfd = FD_NONE;
		p->exec_event = seq ? seq : p->exec_event;
		watch_gaps(c);
	} else {
		c->lost_exits++;
	}
}

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

/* False where the task is not there any more. */
static bool answer(struct watch_call *c, uint64_t id, bool go_on)
{
	struct watch *w = c->watch;

	memset(w->resp, 0, w->sizes.seccomp_notif_resp);
	w->resp->id = id;
	w->resp->flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	w->resp->error = go_on ? 0 : -EPERM;
	return ioctl(c->listener, IOCTL_SEND, w->resp) == 0;
}

/* Nobody is left. Those whose end is not known yet are about to be reaped, and will be looked at.
 */
static void hang_up(struct watch_call *c)
{
	loop_del(c->watch->loop, &c->io);
	fd_close(&c->listener);
	watch_settle(c);
}

/* One per turn: RECV would block where nothing waits, and the loop asks that for us. */
static void on_exec(struct watch_call *c)
{
	struct watch *w = c->watch;
	struct seen s __attribute__((uninitialized)); /* most of it is never touched */

	memset(w->notif, 0, w->sizes.seccomp_notif);
	if (ioctl(c->listener, IOCTL_RECV, w->notif) < 0) {
		if (errno != ENOENT && errno != EINTR)
			hang_up(c);
		return;
	}
	s.file_fd = s.pidfd = FD_NONE;
	s.known = NULL;
	exec_req_of(w->notif, &s.req);
	if (!passes_guard(w, s.req.tid)) {
		(void)answer(c, w->notif->id, false);
		return;
	}
	look(w, &s);
	if (answer(c, w->notif->id, true) && s.found != EXEC_MISS)
		report(c, &s);
	fd_close(&s.file_fd);
	fd_close(&s.pidfd);
}

static void on_listener(struct loop_io *io, uint32_t events)
{
	struct watch_call *c = container_of(io, struct watch_call, io);

	if (events & EPOLLIN)
		on_exec(c);
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
	/* The task sleeps while we look and we sleep while it runs: one CPU does for both. */
	(void)ioctl(listener, IOCTL_SET_FLAGS, FLAG_SYNC_WAKE_UP);
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
	while (c->procs)
		proc_drop(c->watch, c->procs);
	watch_gaps(c);
	loop_del(c->watch->loop, &c->io);
	fd_close(&c->listener);
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
	for (int i = 0; i < ANCESTORS && outside_pid > 1; i++) {
		const struct proc *p = proc_table_find(&w->table, outside_pid);

		if (p)
			return p->call->call;
		outside_pid = proc_parent(FD_NONE, outside_pid);
	}
	return 0;
}

/* Each process takes a descriptor. The other half is for all that keeps the sandbox usable. */
static uint32_t most_processes(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur / 2 > LIMIT_PROCESSES)
		return LIMIT_PROCESSES;
	return (uint32_t)(l.rlim_cur / 2);
}

static size_t at_least(size_t a, size_t b)
{
	return a > b ? a : b;
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

static int watch_init(struct watch *w)
{
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &w->sizes) < 0)
		return -errno;
	/* The kernel's may be larger than ours, never smaller in what we use. */
	w->notif = calloc(1, at_least(w->sizes.seccomp_notif, sizeof *w->notif));
	w->resp = calloc(1, at_least(w->sizes.seccomp_notif_resp, sizeof *w->resp));
	if (!w->notif || !w->resp)
		return -ENOMEM;
	return watch_move(w, w->root_fd);
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
			     .probe_fd = FD_NONE };
	r = watch_init(w);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	loop_timer_stop(w->loop, &w->parked_timer);
	loop_timer_stop(w->loop, &w->young_timer);
	proc_view_done(&w->view);
	fd_close(&w->probe_fd);
	free(w->prefix);
	free(w->notif);
	free(w->resp);
	free(w);
}
