/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/job/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "loop/conn.h"

struct working {
	struct cay *cay;
	const struct job_table *table;
	const void *ctx;
	struct conn conn;
	int cancel_fd;
	int child_fd; /* signalfd: a child has ended */
	struct loop_io child_io;
	bool closed; /* the queue has closed the socket */
	bool wake;   /* work is waiting outside of callbacks */
	bool asked;  /* a job is in progress: */
	uint32_t number;
	struct buf request;
};

static void on_request(struct conn *c, const struct frame *f, int *fds)
{
	struct working *w = container_of(c, struct working, conn);

	for (int i = 0; i < f->nfds; i++)
		(void)close(fds[i]);
	if (f->type != W_DO || f->nfds || w->asked || buf_add_str(&w->request, f->body) < 0) {
		w->closed = w->wake = true;
		conn_done(c);
		return;
	}
	w->number = f->chan;
	w->asked = w->wake = true;
}

static void on_queue_left(struct conn *c, int err)
{
	struct working *w = container_of(c, struct working, conn);

	(void)err;
	w->closed = w->wake = true;
	conn_done(c);
}

static const struct conn_ops queue_ops = { .frame = on_request, .closed = on_queue_left };

static void on_child(struct loop_io *io, uint32_t events)
{
	struct working *w = container_of(io, struct working, child_io);
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->child_fd, &info, sizeof info) > 0)
		;
	w->wake = true;
}

static void reap_children(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void on_progress(void *ctx, const struct progress *p)
{
	struct working *w = ctx;
	struct job_progress say = { .done = p->done, .total = p->total };
	size_t at = 0;

	(void)str_copy(say.stage, sizeof say.stage, str_of(p->stage));
	if (conn_begin(&w->conn, W_PROGRESS, w->number, &at) < 0)
		return;
	if (job_progress_put(&w->conn.out, &say) < 0)
		conn_cancel(&w->conn, at);
	else
		(void)conn_end(&w->conn, at, NULL, 0);
}

static int run_job(struct working *w, struct job_run *run, struct err *e)
{
	const struct job_kind *kind;
	struct cay *c = w->cay;
	struct job_do d;
	int r;

	if (job_do_read(buf_str(&w->request), &d) < 0)
		return err_set(e, ERR_INVALID, "the request of a job is malformed");
	kind = job_kind_find(w->table, d.kind);
	if (!kind)
		return err_set(e, ERR_INVALID, "there is no job '%s'", d.kind);
	run->key = d.key;
	run->in = d.in;
	c->wait.deadline_ns = clock_mono_ns() + d.timeout_ms * NS_PER_MS;
	c->wait.cancel_fd = w->cancel_fd;
	c->progress = on_progress;
	c->progress_ctx = w;
	r = kind->run(run, e);
	c->progress = NULL;
	c->wait.deadline_ns = 0;
	c->wait.cancel_fd = FD_NONE;
	return r;
}

static int send_done(struct working *w, const struct job_done *d, const int *fds, int nfds)
{
	size_t at = 0;
	int r = conn_begin(&w->conn, W_DONE, w->number, &at);

	if (r == 0)
		r = job_done_put(&w->conn.out, d);
	if (r == 0)
		return conn_end(&w->conn, at, fds, nfds);
	for (int i = 0; i < nfds; i++)
		(void)close(fds[i]);
	return r;
}

static void do_job(struct working *w)
{
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_JOB_BODY);
	struct job_run run = { .cay = w->cay, .ctx = w->ctx, .out = &out };
	struct job_done d = { 0 };

	d.failed = run_job(w, &run, &d.why) < 0;
	d.out = buf_str(&out);
	if (d.failed)
		while (run.nfds > 0)
			(void)close(run.fds[--run.nfds]);
	buf_clear(&w->request);
	w->asked = false;
	/* Answer the queue first. */
	if (send_done(w, &d, run.fds, run.nfds) < 0)
		w->closed = true;
	cay_after(w->cay);
}

static int watch_children(struct working *w, struct err *e)
{
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, errno, "block SIGCHLD");
	w->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->child_fd < 0)
		return err_sys(e, errno, "watch children");
	r = loop_add(&w->cay->loop, &w->child_io, w->child_fd, EPOLLIN, on_child);
	return r < 0 ? err_sys(e, -r, "watch children") : 0;
}

static int work(struct working *w, struct err *e)
{
	struct waiter idle = { .loop = &w->cay->loop, .cancel_fd = FD_NONE };

	while (!w->closed) {
		int r = wait_until(&idle, &w->wake);

		if (r < 0)
			return err_sys(e, -r, "wait for a job");
		w->wake = false;
		reap_children();
		if (w->asked)
			do_job(w);
	}
	return 0;
}

int job_worker_run(struct cay *c, const struct job_table *table, const void *ctx, int sock,
		   int cancel_fd, struct err *e)
{
	struct working w = { .cay = c,
			     .table = table,
			     .ctx = ctx,
			     .cancel_fd = cancel_fd,
			     .child_fd = FD_NONE,
			     .request = BUF_INIT(LIMIT_FRAME_BODY) };
	int r;

	(void)fcntl(sock, F_SETFD, FD_CLOEXEC);
	(void)fcntl(cancel_fd, F_SETFD, FD_CLOEXEC);
	r = conn_init(&w.conn, &c->loop, sock, &queue_ops);
	if (r < 0)
		r = err_sys(e, -r, "begin to work");
	else
		r = watch_children(&w, e) < 0 ? -1 : work(&w, e);
	loop_del(&c->loop, &w.child_io);
	conn_done(&w.conn);
	fd_close(&w.child_fd);
	fd_close(&w.cancel_fd);
	buf_done(&w.request);
	return r;
}
