/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/job/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ops/job/parts.h"

static void job_free(struct job *j)
{
	loop_timer_stop(j->queue->loop, &j->deadline);
	buf_done(&j->in);
	free(j);
}

static void job_tell(struct job *j, const struct job_answer *a, const struct err *why)
{
	void (*done)(void *, const struct job_answer *, const struct err *) = j->done;
	void *ctx = j->ctx;

	job_free(j);
	if (done)
		done(ctx, a, why);
	else if (a)
		for (int i = 0; i < a->nfds; i++)
			(void)close(a->fds[i]);
}

void job_finish(struct job *j, const struct job_answer *a, const struct err *why)
{
	struct job_queue *q = j->queue;

	j->worker = NULL;
	lane_leave(q, j);
	job_tell(j, a, why);
	jobs_hand_out(q);
}

/* End a job that never started. */
static void job_end_waiting(struct job *j, const struct err *why)
{
	struct job_queue *q = j->queue;

	lane_take(q, j);
	job_tell(j, NULL, why);
	jobs_hand_out(q);
}

static void on_deadline(struct loop_timer *t)
{
	struct job *j = container_of(t, struct job, deadline);
	struct err why = { 0 };

	(void)err_set(&why, ERR_TIMEOUT, "%s waited too long for its turn", j->kind->name);
	(void)err_code(&why, "jobs.timeout", NULL);
	job_end_waiting(j, &why);
}

static void job_wait(struct job *j, bool first)
{
	uint64_t now = clock_mono_ns();

	loop_timer_set(j->queue->loop, &j->deadline,
		       j->deadline_ns > now ? j->deadline_ns - now : 0, on_deadline);
	lane_put(j->queue, j, first);
}

void job_orphaned(struct job *j)
{
	struct job_queue *q = j->queue;
	struct err why = { 0 };

	j->worker = NULL;
	if ((j->kind->flags & JOB_READ_ONLY) && !j->again && j->done) {
		j->again = true;
		/*
		 * Queue it again before it leaves the lane: the lane stays, and the job stays
		 * first.
		 */
		job_wait(j, true);
		lane_leave(q, j);
		jobs_hand_out(q);
		return;
	}
	(void)err_set(&why, ERR_FAILED,
		      "the process that did %s died: nobody knows how far it had come",
		      j->kind->name);
	(void)err_code(&why, "outcome.unknown", NULL);
	job_finish(j, NULL, &why);
}

static void hand_out_class(struct job_queue *q, enum job_class class_)
{
	struct job_worker *w;
	struct job *j;

	while ((w = worker_idle(q, class_)) && (j = lane_next(q, class_))) {
		loop_timer_stop(q->loop, &j->deadline);
		if (worker_give(w, j) == 0)
			continue;
		job_wait(j, true);
		lane_leave(q, j);
	}
}

void jobs_hand_out(struct job_queue *q)
{
	/* The host may reply inside its call, and a callback may start jobs. */
	q->again = true;
	if (q->handing_out)
		return;
	q->handing_out = true;
	while (q->again) {
		q->again = false;
		hand_out_class(q, JOB_CLASS_QUICK);
		hand_out_class(q, JOB_CLASS_LONG);
	}
	q->handing_out = false;
}

static int check_spec(const struct job_queue *q, const struct job_spec *s,
		      const struct job_kind **ret, struct err *e)
{
	*ret = job_kind_find(q->table, s->kind);
	if (!*ret)
		return err_set(e, ERR_INVALID, "there is no job '%s'", s->kind);
	if (s->key && (strlen(s->key) >= JOB_KEY_SIZE || s->key[0] == '/'))
		return err_set(e, ERR_INVALID, "'%.40s' is not an id", s->key);
	if (s->asker && strlen(s->asker) >= JOB_KEY_SIZE)
		return err_set(e, ERR_INVALID, "'%.40s' is not the id of a key", s->asker);
	if (s->in.n > LIMIT_JOB_BODY)
		return err_set(e, ERR_INVALID, "%s: %zu bytes are too many", s->kind, s->in.n);
	return 0;
}

static int check_room(const struct job_queue *q, const struct job_lane *l, const char *key,
		      struct err *e)
{
	bool keyed = key && key[0], is_host = !l->asker->name[0];
	bool asker_full = !is_host && l->asker->waiting >= LIMIT_JOBS_OF_ASKER;

	if (q->waiting < LIMIT_JOBS && !asker_full && (!keyed || l->waiting < LIMIT_JOBS_OF_KEY))
		return 0;
	if (q->waiting >= LIMIT_JOBS)
		(void)err_set(e, ERR_LIMIT, "%d requests are waiting already", q->waiting);
	else if (asker_full)
		(void)err_set(e, ERR_LIMIT, "%d requests of this key are waiting already",
			      l->asker->waiting);
	else
		(void)err_set(e, ERR_LIMIT, "%d requests wait for sandbox '%s' already", l->waiting,
			      key);
	return err_code(e, "jobs.full", NULL);
}

struct job *job_start(struct job_queue *q, const struct job_spec *s, struct err *e)
{
	const struct job_kind *kind;
	struct job_lane *lane;
	struct job *j;

	if (check_spec(q, s, &kind, e) < 0)
		return NULL;
	lane = lane_of(q, job_class_of(kind), s->asker, s->key);
	j = calloc(1, sizeof *j);
	if (!lane || !j) {
		free(j);
		if (lane)
			lane_free_if_empty(q, lane);
		(void)err_sys(e, ENOMEM, "start %s", s->kind);
		return NULL;
	}
	*j = (struct job){ .queue = q,
			   .kind = kind,
			   .lane = lane,
			   .number = ++q->number,
			   .in = BUF_INIT(LIMIT_JOB_BODY),
			   .done = s->done,
			   .progress = s->progress,
			   .ctx = s->ctx };
	j->deadline_ns =
		clock_mono_ns() + (s->timeout_ms ? s->timeout_ms : JOB_TIMEOUT_MS) * NS_PER_MS;
	if (buf_add_str(&j->in, s->in) < 0)
		(void)err_sys(e, ENOMEM, "start %s", s->kind);
	else if (check_room(q, lane, s->key, e) == 0) {
		job_wait(j, false);
		jobs_hand_out(q);
		return j;
	}
	job_free(j);
	lane_free_if_empty(q, lane);
	return NULL;
}

void job_drop(struct job *j)
{
	j->done = NULL;
	j->progress = NULL;
	if (!j->worker)
		job_end_waiting(j, NULL);
	else if (j->kind->flags & JOB_READ_ONLY)
		worker_cancel(j->worker);
}

void job_cancel(struct job *j)
{
	struct err why = { 0 };

	if (j->worker) {
		worker_cancel(j->worker);
		return;
	}
	(void)err_set(&why, ERR_FAILED, "%s was cancelled", j->kind->name);
	(void)err_code(&why, "cancelled", NULL);
	job_end_waiting(j, &why);
}

static void free_waiting(struct job_queue *q)
{
	for (size_t i = 0; i < ARRAY_LEN(q->lanes); i++)
		for (struct job_lane *l = q->lanes[i]; l; l = l->next)
			while (l->head) {
				struct job *j = l->head;

				l->head = j->next;
				job_free(j);
			}
}

void job_queue_init(struct job_queue *q, struct loop *l, const struct job_table *table,
		    const struct job_host *host, int quick, int longs)
{
	*q = (struct job_queue){ .loop = l, .table = table, .host = *host };
	q->most[JOB_CLASS_QUICK] = quick < JOB_QUICK_MOST ? quick : JOB_QUICK_MOST;
	q->most[JOB_CLASS_LONG] = longs < JOB_LONG_MOST ? longs : JOB_LONG_MOST;
	for (int i = 0; i < JOB_CLASSES; i++)
		q->turn_end[i] = &q->turn[i];
	for (int i = 0; i < JOB_WORKERS; i++) {
		q->workers[i].queue = q;
		q->workers[i].cancel_fd = FD_NONE;
		q->workers[i].conn.fd = FD_NONE;
	}
}

void job_queue_done(struct job_queue *q)
{
	for (int i = 0; i < JOB_WORKERS; i++) {
		struct job_worker *w = &q->workers[i];

		loop_timer_stop(q->loop, &w->timer);
		conn_done(&w->conn);
		fd_close(&w->cancel_fd);
		if (w->job)
			job_free(w->job);
	}
	free_waiting(q);
	lanes_free(q);
	*q = (struct job_queue){ 0 };
}

int job_queue_waiting(const struct job_queue *q)
{
	return q->waiting;
}

int job_queue_busy(const struct job_queue *q)
{
	int n = 0;

	for (int i = 0; i < JOB_WORKERS; i++)
		n += q->workers[i].job != NULL;
	return n;
}
