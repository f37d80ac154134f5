/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "ops/flatten.h"
#include "ops/start.h"
#include "store/storage.h"

enum { SWITCH_WAIT_MS = 15000, POLL_MS = 2, MERGED_TRIES = 5 };

/* The file is removed only with the sandbox, so its name cannot be replaced. */
static int take_lock(struct operation *m, struct err *e)
{
	auto_close int dir = FD_NONE, fd = FD_NONE;
	int r;

	if (state_sandbox_open(&m->s->state, m->row.id, &dir, e) < 0)
		return -1;
	fd = openat(dir, "op", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "open the lock of sandbox '%s'", m->row.id);
	r = wait_lock(&m->s->wait, fd);
	if (r == -ETIMEDOUT || r == -ECANCELED) {
		(void)err_set(e, ERR_CONFLICT, "another operation on sandbox '%s' is in progress",
			      m->row.id);
		return err_code(e, "sandbox.busy", m->row.id);
	}
	if (r < 0)
		return err_sys(e, -r, "lock sandbox '%s'", m->row.id);
	m->lock = TAKE_FD(fd);
	return 0;
}

/*
 * The warden gives its lease to one client at a time. A warden of version 2 has no lease: use a
 * lock file.
 */
static int take_lease(struct operation *m, struct err *e)
{
	if (link_connect(&m->s->wait, &m->s->state, m->row.id, &m->link, e) < 0)
		return -1;
	if (link_lease(m->link, &m->s->wait, e) == 0)
		return 0;
	return strcmp(e->code, "lease.none") == 0 ? take_lock(m, e) : -1;
}

static int await_switch(struct operation *m, struct sandbox_status *ret, struct err *e)
{
	for (int i = 0; i < SWITCH_WAIT_MS / POLL_MS; i++) {
		if (link_info(m->link, &m->s->wait, ret, e) < 0)
			return -1;
		if (!ret->switching)
			return 0;
		if (wait_pause(&m->s->wait, POLL_MS * NS_PER_MS) < 0)
			return err_set(e, ERR_TIMEOUT, "the wait for '%s' was ended", m->row.id);
	}
	return err_set(e, ERR_TIMEOUT, "a snapshot or rollback of '%s' does not end", m->row.id);
}

/*
 * We hold the lock, so the process that began it is gone. The warden completes or undoes an order;
 * its layers show which.
 */
static int recover(struct operation *m, const struct operation_row *op, struct err *e)
{
	enum op_result result =
		op->kind == OPERATION_SNAPSHOT ? OPERATION_SEALED : OPERATION_UNCHANGED;
	struct sandbox_status now;

	if (await_switch(m, &now, e) < 0)
		return -1;
	if (strcmp(now.top, op->layer) != 0)
		return catalog_op_cancel(m->s->catalog, m->row.id, e);
	/* A rollback to the current layer may never have switched: keep the current top. */
	return catalog_op_done(m->s->catalog, op, result, m->row.top, e);
}

static int settle_journal(struct operation *m, struct err *e)
{
	struct operation_row op = { 0 };
	int r;

	/* The previous holder of the lock may have changed the top. */
	if (catalog_top(m->s->catalog, m->row.id, m->row.top, e) < 0)
		return -1;
	r = catalog_op_find(m->s->catalog, m->row.id, &op, e);
	if (r > 0)
		r = recover(m, &op, e) < 0 ? -1
					   : catalog_top(m->s->catalog, m->row.id, m->row.top, e);
	operation_row_done(&op);
	return r;
}

int operation_open(struct operation *m, struct cay *s, const char *ref, struct err *e)
{
	*m = (struct operation){ .s = s, .lock = FD_NONE };
	if (catalog_find(s->catalog, ref, &m->row, e) < 0)
		return -1;
	if (m->row.ephemeral) {
		err_set(e, ERR_INVALID, "sandbox '%s' ends with its command and keeps no state",
			m->row.id);
		return err_code(e, "sandbox.ephemeral", m->row.id);
	}
	if (!state_is_alive(&s->state, m->row.id)) {
		err_set(e, ERR_UNAVAILABLE, "sandbox '%s' is not running", m->row.id);
		return err_code(e, "sandbox.not_running", m->row.id);
	}
	if (take_lease(m, e) < 0)
		return -1;
	return settle_journal(m, e);
}

void operation_done(struct operation *m)
{
	link_free(m->link);
	m->link = NULL;
	fd_close(&m->lock);
	sandbox_row_done(&m->row);
}

/* Make room for one more layer. The stack then differs but shows the same files. */
static int flatten_stack(struct operation *m, struct err *e)
{
	auto_free char(*layers)[ID_SIZE] = NULL;
	size_t n = 0;

	if (catalog_stack(m->s->catalog, m->row.top, &layers, &n, e) < 0 ||
	    flatten_before(m->s, n, e) < 0)
		return -1;
	return catalog_top(m->s->catalog, m->row.id, m->row.top, e);
}

/* One operation, from the journal to the catalog. */
struct operation_step {
	struct operation_row op;
	struct link_switch ask;
	char (*layers)[ID_SIZE]; /* of `ask` */
};

static void operation_step_done(struct operation_step *step)
{
	free(step->layers);
	step->layers = NULL;
}
DEFINE_AUTO(struct operation_step, operation_step_done)

/*
 * e holds the failure. If the warden refused, nothing was done. If its answer was lost, its layers
 * show the outcome. If the warden is gone, the files that it left decide (ops/lost.c).
 */
static void step_fail(struct operation *m, const struct operation_step *step, const struct err *e)
{
	struct err ignored = { 0 };

	if (e->kind != ERR_UNAVAILABLE)
		(void)recover(m, &step->op, &ignored);
}

/* Write the journal row and prepare the request to the warden. */
static int step_begin(struct operation *m, struct operation_step *step, struct err *e)
{
	struct catalog *c = m->s->catalog;
	const struct operation_row *op = &step->op;

	if (op->kind == OPERATION_SNAPSHOT &&
	    (start_freeze_sandbox(m->s, m->row.id, m->row.top, e) < 0 || flatten_stack(m, e) < 0))
		return -1;
	if (catalog_op_begin(c, op, e) < 0)
		return -1;
	failpoint("op.begun");
	/* From here on, no other process changes the stack. */
	if (catalog_top(c, m->row.id, m->row.top, e) < 0)
		return -1;
	if (catalog_stack(c, op->kind == OPERATION_ROLLBACK ? op->layer : m->row.top, &step->layers,
			  &step->ask.nlayers, e) < 0) {
		step_fail(m, step, e);
		return -1;
	}
	step->ask.layers = step->layers;
	return 0;
}

static int step_end(struct operation *m, const struct operation_step *step,
		    const struct link_switched *res, struct err *e)
{
	const struct operation_row *op = &step->op;

	failpoint("op.switched");
	if (catalog_op_done(m->s->catalog, op,
			    op->kind == OPERATION_ROLLBACK ? OPERATION_SEALED
							   : (enum op_result)res->sealed,
			    m->row.top, e) < 0)
		return -1;
	failpoint("op.done");
	return catalog_top(m->s->catalog, m->row.id, m->row.top, e);
}

/* Write the journal, ask the warden, record the result. */
static int carry_out(struct operation *m, struct operation_step *step, struct link_switched *res,
		     struct err *e)
{
	/* No cancellation between a journal row and its result. */
	struct waiter steady = { .loop = m->s->wait.loop, .cancel_fd = FD_NONE };

	if (step_begin(m, step, e) < 0)
		return -1;
	if (link_switch(m->link, &steady, &step->ask, res, e) < 0) {
		step_fail(m, step, e);
		return -1;
	}
	return step_end(m, step, res, e);
}

static int plan_snapshot(struct operation *m, struct snapshot_row *want,
			 struct operation_step *step, struct err *e)
{
	struct operation_row *op = &step->op;

	*op = (struct operation_row){ .kind = OPERATION_SNAPSHOT,
				      .snapshot_kind = want->kind,
				      .note = want->note };
	if ((!want->id[0] && state_id_new(want->id, e) < 0) || state_id_new(op->layer, e) < 0)
		return -1;
	(void)str_copy(op->snapshot, sizeof op->snapshot, str_of(want->id));
	(void)str_copy(op->sandbox, sizeof op->sandbox, str_of(m->row.id));
	(void)str_copy(op->name, sizeof op->name, str_of(want->name));
	(void)str_copy(want->sandbox, sizeof want->sandbox, str_of(m->row.id));
	step->ask = (struct link_switch){ .seal = op->layer,
					  .snapshot = op->snapshot,
					  .name = op->name[0] ? op->name : NULL,
					  .alone = m->alone };
	return 0;
}

int operation_snapshot(struct operation *m, struct snapshot_row *want, struct link_switched *res,
		       struct err *e)
{
	auto_done(operation_step_done) struct operation_step step = { 0 };
	struct link_switched unused = { 0 };
	const char *top;

	res = res ? res : &unused;
	if (plan_snapshot(m, want, &step, e) < 0 || carry_out(m, &step, res, e) < 0)
		return -1;
	top = res->sealed == OPERATION_UNCHANGED ? m->row.top : step.op.layer;
	(void)str_copy(want->top, sizeof want->top, str_of(top));
	return 0;
}

int operation_rollback(struct operation *m, const struct snapshot_row *to, bool force,
		       struct link_switched *res, struct err *e)
{
	struct operation_row op = { .kind = OPERATION_ROLLBACK };
	struct link_switched unused;

	if (strcmp(to->sandbox, m->row.id) != 0) {
		err_set(e, ERR_INVALID, "snapshot '%s' is not one of sandbox '%s'", to->id,
			m->row.id);
		return err_code(e, "snapshot.of_another", to->id);
	}
	(void)str_copy(op.sandbox, sizeof op.sandbox, str_of(m->row.id));
	(void)str_copy(op.snapshot, sizeof op.snapshot, str_of(to->id));
	for (int i = 0;; i++) {
		auto_done(operation_step_done) struct operation_step step = {
			.ask = { .force = force, .snapshot = to->id, .name = to->name }
		};
		struct snapshot_row now = { 0 };

		/* Its layers may have been merged since the lookup. */
		if (catalog_find_snapshot(m->s->catalog, to->id, &now, e) < 0)
			return -1;
		(void)str_copy(op.layer, sizeof op.layer, str_of(now.top));
		snapshot_row_done(&now);
		step.op = op;
		if (carry_out(m, &step, res ? res : &unused, e) == 0)
			return 0;
		if (e->sys != ESTALE || i == MERGED_TRIES)
			return -1;
	}
}

int operation_sync(struct operation *m, struct err *e)
{
	auto_close int storage = FD_NONE;

	if (storage_open(&m->s->state, &storage, e) < 0)
		return -1;
	if (syncfs(m->s->state.fd) < 0 || (storage >= 0 && syncfs(storage) < 0))
		return err_sys(e, errno, "sync '%s'", m->s->state.dir);
	return catalog_sync(m->s->catalog, e);
}
