/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as the queue sees them: one socket each, one job at a time. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "ops/job/parts.h"

static int slot_of(const struct job_worker *w)
{
	return (int)(w - w->queue->workers);
}

static void on_kill(struct loop_timer *t)
{
	struct job_worker *w = container_of(t, struct job_worker, timer);

	w->state = WORKER_ENDING;
	w->queue->host.kill(w->queue->host.ctx, slot_of(w));
}

/*
 * The process still exists. Its job waits for its end, because the process may still be running the
 * job.
 */
static void worker_end(struct job_worker *w)
{
	conn_done(&w->conn);
	on_kill(&w->timer);
	loop_timer_stop(w->queue->loop, &w->timer);
}

/* A worker that is idle for long ends when the queue closes its socket. */
static void on_idle_long(struct loop_timer *t)
{
	struct job_worker *w = container_of(t, struct job_worker, timer);

	w->retired = true;
	w->state = WORKER_ENDING;
	conn_done(&w->conn);
	loop_timer_set(w->queue->loop, t, JOB_GRACE_MS * NS_PER_MS, on_kill);
}

static void worker_rest_over(struct loop_timer *t)
{
	struct job_worker *w = container_of(t, struct job_worker, timer);

	w->state = WORKER_NONE;
	jobs_hand_out(w->queue);
}

static void worker_becomes_idle(struct job_worker *w)
{
	struct loop *l = w->queue->loop;

	w->job = NULL;
	w->state = WORKER_IDLE;
	loop_timer_stop(l, &w->timer);
	if (job_slot_class(slot_of(w)) == JOB_CLASS_LONG)
		loop_timer_set(l, &w->timer, JOB_LONG_IDLE_MS * NS_PER_MS, on_idle_long);
}

static int take_done(struct job_worker *w, const struct frame *f, int *fds)
{
	struct job_answer a = { .nfds = f->nfds };
	struct job *j = w->job;
	struct job_done d;

	if (f->nfds > JOB_FDS || job_done_read(f->body, &d) < 0 || (d.failed && f->nfds))
		return -EBADMSG;
	for (int i = 0; i < f->nfds; i++)
		a.fds[i] = fds[i];
	a.out = d.out;
	/* An ending worker gets no other job: its process is dead or about to be killed. */
	w->rest_ms = 0;
	if (w->state == WORKER_BUSY)
		worker_becomes_idle(w);
	else
		w->job = NULL;
	job_finish(j, d.failed ? NULL : &a, d.failed ? &d.why : NULL);
	return 0;
}

static int take_progress(const struct job *j, const struct frame *f)
{
	struct job_progress p;

	if (f->nfds || job_progress_read(f->body, &p) < 0)
		return -EBADMSG;
	if (j->progress)
		j->progress(j->ctx, &p);
	return 0;
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct job_worker *w = container_of(c, struct job_worker, conn);
	int r = -EBADMSG;

	if (w->job && f->chan == w->job->number) {
		if (f->type == W_DONE)
			r = take_done(w, f, fds);
		else if (f->type == W_PROGRESS)
			r = take_progress(w->job, f);
	}
	if (r == 0)
		return;
	for (int i = 0; i < f->nfds; i++)
		(void)close(fds[i]);
	worker_end(w);
}

static void on_closed(struct conn *c, int err)
{
	(void)err;
	worker_end(container_of(c, struct job_worker, conn));
}

static const struct conn_ops worker_conn_ops = { .frame = on_frame, .closed = on_closed };

void job_queue_started(struct job_queue *q, int slot, int sock, int cancel_fd)
{
	struct job_worker *w = &q->workers[slot];

	if (w->state != WORKER_STARTING ||
	    conn_init(&w->conn, q->loop, sock, &worker_conn_ops) < 0) {
		/* The worker ends by itself without its socket. */
		if (w->state != WORKER_STARTING)
			(void)close(sock);
		(void)close(cancel_fd);
		return;
	}
	w->cancel_fd = cancel_fd;
	w->retired = false;
	worker_becomes_idle(w);
	jobs_hand_out(q);
}

static void worker_rest(struct job_worker *w)
{
	uint64_t ms = w->rest_ms ? w->rest_ms : JOB_REST_FIRST_MS;

	if (w->retired) {
		w->state = WORKER_NONE;
		return;
	}
	w->rest_ms = ms * 2 < JOB_REST_LAST_MS ? ms * 2 : JOB_REST_LAST_MS;
	w->state = WORKER_RESTING;
	loop_timer_set(w->queue->loop, &w->timer, ms * NS_PER_MS, worker_rest_over);
}

void job_queue_gone(struct job_queue *q, int slot)
{
	struct job_worker *w = &q->workers[slot];
	struct job *j;

	if (w->state == WORKER_NONE || w->state == WORKER_RESTING)
		return;
	w->state = WORKER_ENDING;
	/*
	 * Its last messages may still be in the socket. The other end is closed, so this read does
	 * not block.
	 */
	if (w->conn.fd >= 0)
		(void)conn_drain(&w->conn, 1);
	conn_done(&w->conn);
	fd_close(&w->cancel_fd);
	loop_timer_stop(q->loop, &w->timer);
	j = TAKE_PTR(w->job);
	worker_rest(w);
	if (j)
		job_orphaned(j);
	jobs_hand_out(q);
}

struct job_worker *worker_idle(struct job_queue *q, enum job_class class_)
{
	int first = class_ == JOB_CLASS_QUICK ? 0 : JOB_QUICK_MOST, starting = 0;
	struct job_worker *none = NULL;

	for (int i = first; i < first + q->most[class_]; i++) {
		struct job_worker *w = &q->workers[i];

		if (w->state == WORKER_IDLE)
			return w;
		starting += w->state == WORKER_STARTING;
		if (w->state == WORKER_NONE && !none)
			none = w;
	}
	if (none && starting < q->waiting_of[class_]) {
		none->state = WORKER_STARTING;
		q->again = true; /* bounded by the number of jobs and of workers */
		q->host.start(q->host.ctx, slot_of(none));
	}
	return NULL;
}

int worker_give(struct job_worker *w, struct job *j)
{
	uint64_t now = clock_mono_ns(), left_ns, ignored;
	struct job_do d = { .in = buf_str(&j->in) };
	size_t at = 0;
	int r;

	left_ns = j->deadline_ns > now ? j->deadline_ns - now : 0;
	d.timeout_ms = left_ns / NS_PER_MS;
	(void)str_copy(d.kind, sizeof d.kind, str_of(j->kind->name));
	if (j->lane->key[0] != '/')
		(void)str_copy(d.key, sizeof d.key, str_of(j->lane->key));
	/* Discard a cancellation that arrived too late for the previous job. */
	(void)eventfd_read(w->cancel_fd, &ignored);
	r = conn_begin(&w->conn, W_DO, j->number, &at);
	if (r == 0)
		r = job_do_put(&w->conn.out, &d);
	if (r == 0)
		r = conn_end(&w->conn, at, NULL, 0);
	if (r < 0) {
		worker_end(w);
		return r;
	}
	w->job = j;
	j->worker = w;
	w->state = WORKER_BUSY;
	loop_timer_set(w->queue->loop, &w->timer, left_ns + JOB_GRACE_MS * NS_PER_MS, on_kill);
	return 0;
}

void worker_cancel(struct job_worker *w)
{
	(void)eventfd_write(w->cancel_fd, 1);
}
