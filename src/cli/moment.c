/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "cli/tidy.h"
#include "store/pool.h"

enum { SWITCH_WAIT_MS = 15000, POLL_MS = 2, MERGED_TRIES = 5 };

/* The file is never removed but with the sandbox: there is no race for its name. */
static int take_lock(struct moment *m, struct err *e)
{
	auto_close int dir = FD_NONE, fd = FD_NONE;

	if (state_sandbox_open(&m->s->state, m->row.id, &dir, e) < 0)
		return -1;
	fd = openat(dir, "op", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, errno, "lock sandbox '%s'", m->row.id);
	if (fd < 0)
		return err_sys(e, errno, "open the lock of sandbox '%s'", m->row.id);
	m->lock = TAKE_FD(fd);
	return 0;
}

static int await_switch(struct moment *m, struct client_state *ret, struct err *e)
{
	for (int i = 0; i < SWITCH_WAIT_MS / POLL_MS; i++) {
		if (client_info(&m->s->state, m->row.id, ret, e) < 0)
			return -1;
		if (!ret->switching)
			return 0;
		(void)poll(NULL, 0, POLL_MS);
	}
	return err_set(e, ERR_TIMEOUT, "a snapshot or rollback of '%s' does not end", m->row.id);
}

/*
 * Whoever began it is gone, for we have its lock. The warden goes through with what it was told
 * or undoes it: its layers tell which.
 */
static int recover(struct moment *m, const struct op_row *op, struct err *e)
{
	enum op_result result = op->kind == OP_SNAPSHOT ? OP_SEALED : OP_UNCHANGED;
	struct client_state now;

	if (await_switch(m, &now, e) < 0)
		return -1;
	if (strcmp(now.top, op->layer) != 0)
		return catalog_op_cancel(m->s->catalog, m->row.id, e);
	/* One that goes back to where it is may never have been switched: it keeps what it has. */
	return catalog_op_done(m->s->catalog, op, result, m->row.top, e);
}

static int settle_journal(struct moment *m, struct err *e)
{
	struct op_row op = { 0 };
	int r;

	/* Whoever held the lock before us may have changed it. */
	if (catalog_top(m->s->catalog, m->row.id, m->row.top, e) < 0)
		return -1;
	r = catalog_op_find(m->s->catalog, m->row.id, &op, e);
	if (r > 0)
		r = recover(m, &op, e) < 0 ? -1
					   : catalog_top(m->s->catalog, m->row.id, m->row.top, e);
	op_row_done(&op);
	return r;
}

int moment_open(struct moment *m, struct cli_store *s, const char *ref, struct err *e)
{
	*m = (struct moment){ .s = s, .lock = FD_NONE };
	if (catalog_find(s->catalog, ref, &m->row, e) < 0)
		return -1;
	if (m->row.ephemeral) {
		err_set(e, ERR_INVALID, "sandbox '%s' ends with its command and keeps no state",
			m->row.id);
		return err_hint(e, "make one with cay create, or cay run --keep");
	}
	if (!state_is_alive(&s->state, m->row.id)) {
		err_set(e, ERR_UNAVAILABLE, "sandbox '%s' is not running", m->row.id);
		return err_hint(e, "its files may be a snapshot: cay snapshots %s", m->row.id);
	}
	if (take_lock(m, e) < 0)
		return -1;
	return settle_journal(m, e);
}

void moment_done(struct moment *m)
{
	fd_close(&m->lock);
	sandbox_row_done(&m->row);
}

/* One more layer must find room. The stack is another then, with the same in it. */
static int tidy_before(struct moment *m, struct err *e)
{
	auto_free char(*layers)[ID_SIZE] = NULL;
	size_t n = 0;

	if (catalog_stack(m->s->catalog, m->row.top, &layers, &n, e) < 0 ||
	    tidy_stack(m->s, n, e) < 0)
		return -1;
	return catalog_top(m->s->catalog, m->row.id, m->row.top, e);
}

static void expect_done(void *ctx)
{
	const struct moment *m = ctx;

	catalog_op_expect(m->s->catalog, m->alone);
}

int moment_step_begin(struct moment *m, struct moment_step *step, struct err *e)
{
	struct catalog *c = m->s->catalog;
	const struct op_row *op = &step->op;

	step->ask.meanwhile = expect_done;
	step->ask.ctx = m;
	if (op->kind == OP_SNAPSHOT && tidy_before(m, e) < 0)
		return -1;
	if (catalog_op_begin(c, op, e) < 0)
		return -1;
	failpoint("op.begun");
	/* From here on nobody changes the stack. */
	if (catalog_top(c, m->row.id, m->row.top, e) < 0)
		return -1;
	if (catalog_stack(c, op->kind == OP_ROLLBACK ? op->layer : m->row.top, &step->layers,
			  &step->ask.nlayers, e) < 0) {
		moment_step_fail(m, step, e);
		return -1;
	}
	step->ask.layers = step->layers;
	return 0;
}

int moment_step_end(struct moment *m, const struct moment_step *step,
		    const struct client_switched *res, struct err *e)
{
	const struct op_row *op = &step->op;

	failpoint("op.switched");
	if (catalog_op_done(m->s->catalog, op, op->kind == OP_ROLLBACK ? OP_SEALED : res->result,
			    m->row.top, e) < 0)
		return -1;
	failpoint("op.done");
	return catalog_top(m->s->catalog, m->row.id, m->row.top, e);
}

/* Where the warden is gone, what it left decides: store/lost.c. */
void moment_step_fail(struct moment *m, const struct moment_step *step, const struct err *e)
{
	struct err ignored = { 0 };

	if (e->kind != ERR_UNAVAILABLE)
		(void)recover(m, &step->op, &ignored);
}

void moment_step_done(struct moment_step *step)
{
	free(step->layers);
	step->layers = NULL;
}

/* Journal, act, settle. */
static int carry_out(struct moment *m, struct moment_step *step, struct client_switched *res,
		     struct err *e)
{
	if (moment_step_begin(m, step, e) < 0)
		return -1;
	if (client_switch(&m->s->state, m->row.id, &step->ask, res, e) < 0) {
		moment_step_fail(m, step, e);
		return -1;
	}
	return moment_step_end(m, step, res, e);
}

int moment_plan_snapshot(struct moment *m, struct snapshot_row *want, struct moment_step *step,
			 struct err *e)
{
	struct op_row *op = &step->op;

	*op = (struct op_row){ .kind = OP_SNAPSHOT,
			       .snapshot_kind = want->kind,
			       .note = want->note };
	if ((!want->id[0] && state_id_new(want->id, e) < 0) || state_id_new(op->layer, e) < 0)
		return -1;
	(void)str_copy(op->snapshot, sizeof op->snapshot, str_of(want->id));
	(void)str_copy(op->sandbox, sizeof op->sandbox, str_of(m->row.id));
	(void)str_copy(op->name, sizeof op->name, str_of(want->name));
	(void)str_copy(want->sandbox, sizeof want->sandbox, str_of(m->row.id));
	step->ask = (struct client_switch){ .seal = op->layer,
					    .snapshot = op->snapshot,
					    .name = op->name[0] ? op->name : NULL,
					    .alone = m->alone };
	return 0;
}

int moment_snapshot(struct moment *m, struct snapshot_row *want, struct client_switched *res,
		    struct err *e)
{
	auto_done(moment_step_done) struct moment_step step = { 0 };
	struct client_switched unused = { 0 };
	const char *top;

	res = res ? res : &unused;
	if (moment_plan_snapshot(m, want, &step, e) < 0 || carry_out(m, &step, res, e) < 0)
		return -1;
	top = res->result == OP_UNCHANGED ? m->row.top : step.op.layer;
	(void)str_copy(want->top, sizeof want->top, str_of(top));
	return 0;
}

int moment_rollback(struct moment *m, const struct snapshot_row *to, bool force,
		    struct client_switched *res, struct err *e)
{
	struct op_row op = { .kind = OP_ROLLBACK };
	struct client_switched unused;

	if (strcmp(to->sandbox, m->row.id) != 0) {
		err_set(e, ERR_INVALID, "snapshot '%s' is not one of sandbox '%s'", to->id,
			m->row.id);
		return err_hint(e, "make a sandbox of it: cay fork %s", to->id);
	}
	(void)str_copy(op.sandbox, sizeof op.sandbox, str_of(m->row.id));
	(void)str_copy(op.snapshot, sizeof op.snapshot, str_of(to->id));
	for (int i = 0;; i++) {
		auto_done(moment_step_done) struct moment_step step = {
			.ask = { .force = force, .snapshot = to->id, .name = to->name }
		};
		struct snapshot_row now = { 0 };

		/* Its layers may have been merged since it was looked up. */
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

int moment_sync(struct moment *m, struct err *e)
{
	auto_close int pool = FD_NONE;

	if (pool_open(&m->s->state, &pool, e) < 0)
		return -1;
	if (syncfs(m->s->state.fd) < 0 || (pool >= 0 && syncfs(pool) < 0))
		return err_sys(e, errno, "sync '%s'", m->s->state.dir);
	return catalog_sync(m->s->catalog, e);
}
