/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fork.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/operation.h"
#include "ops/reconcile.h"
#include "ops/start.h"
#include "store/ready.h"

/* Forks claimed at once, and so the most that one failure discards. */
enum { TOGETHER = 64 };

static int from_sandbox(struct cay *c, const char *id, struct fork_source *ret, struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	struct snapshot_row row = { .kind = SNAPSHOT_FORK };

	if (operation_open(&m, c, id, e) < 0 || state_id_new(row.id, e) < 0 ||
	    state_lock(&c->state, row.id, &ret->lock_fd, e) < 0)
		return -1;
	if (operation_snapshot(&m, &row, NULL, e) < 0) {
		state_unlock(&c->state, row.id, ret->lock_fd);
		return -1;
	}
	(void)str_copy(ret->of.recipe_of, sizeof ret->of.recipe_of, str_of(m.row.id));
	(void)str_copy(ret->of.top, sizeof ret->of.top, str_of(row.top));
	(void)str_copy(ret->holder, sizeof ret->holder, str_of(row.id));
	return 0;
}

static void from_snapshot(const struct snapshot_row *snap, struct fork_source *ret)
{
	(void)str_copy(ret->of.recipe_of, sizeof ret->of.recipe_of, str_of(snap->sandbox));
	(void)str_copy(ret->of.top, sizeof ret->of.top, str_of(snap->top));
}

/* A lost sandbox left its files as a snapshot. 1; 0 if it is not lost; -1. */
static int from_lost(struct cay *c, const char *id, struct fork_source *ret, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };
	int r;

	if (state_is_alive(&c->state, id))
		return 0;
	if (reconcile_one(c->catalog, &c->state, id, e) < 0)
		return -1;
	r = catalog_last_snapshot(c->catalog, id, SNAPSHOT_LOST, &snap, e);
	if (r > 0)
		from_snapshot(&snap, ret);
	return r;
}

int fork_source_open(struct cay *c, const char *ref, struct fork_source *ret, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	struct err none = { 0 };
	int r = state_id_ok(ref) ? catalog_get_snapshot(c->catalog, ref, &snap, e) : 0;

	/* A complete id, as programs pass it, needs only one lookup. */
	if (r > 0)
		from_snapshot(&snap, ret);
	if (r != 0)
		return r < 0 ? -1 : 0;
	if (strncmp(ref, "snap:", 5) != 0 && catalog_find(c->catalog, ref, &box, &none) == 0) {
		r = from_lost(c, box.id, ret, e);
		return r == 0 ? from_sandbox(c, box.id, ret, e) : r < 0 ? -1 : 0;
	}
	if (catalog_find_snapshot(c->catalog, ref, &snap, e) < 0) {
		if (e->kind == ERR_NOT_FOUND && none.kind != ERR_NONE &&
		    none.kind != ERR_NOT_FOUND) {
			*e = none; /* for example an ambiguous prefix */
			return -1;
		}
		if (e->kind == ERR_NOT_FOUND && strncmp(ref, "snap:", 5) != 0) {
			err_set(e, ERR_NOT_FOUND, "no sandbox or snapshot '%s'", ref);
			return err_code(e, "source.not_found", ref);
		}
		return -1;
	}
	from_snapshot(&snap, ret);
	return 0;
}

void fork_source_close(struct cay *c, struct fork_source *from)
{
	struct err ignored = { 0 };

	if (!from->holder[0])
		return;
	(void)catalog_del_snapshot(c->catalog, from->holder, &ignored);
	state_unlock(&c->state, from->holder, from->lock_fd);
	from->holder[0] = '\0';
}

static void name_it(char out[64], const char *name, bool numbered, unsigned number)
{
	if (name && numbered)
		(void)snprintf(out, 64, "%.48s-%u", name, number);
	else
		(void)snprintf(out, 64, "%s", name ? name : "");
}

/* End the forks that were claimed but not finished. */
static void drop_rest(struct creation *ns, size_t from, size_t n)
{
	struct err ignored = { 0 };

	for (size_t i = from; i < n; i++)
		(void)creation_destroy(&ns[i], &ignored);
}

static int finish(struct creation *ns, unsigned n, const struct fork_spec *f, unsigned first,
		  struct err *e)
{
	for (unsigned i = 0; i < n; i++) {
		int r = creation_finish(&ns[i], e);

		if (r == 0)
			r = f->fn(f->ctx, first + i, &ns[i]) ? 1 : 0;
		if (r != 0) {
			drop_rest(ns, i + 1, n);
			return r;
		}
	}
	return 0;
}

static int fork_some(struct cay *c, const struct fork_source *from, const struct fork_spec *f,
		     struct creation *early, unsigned first, struct err *e)
{
	auto_free struct creation *ns = calloc(TOGETHER, sizeof *ns);
	unsigned n = f->count - first < TOGETHER ? f->count - first : TOGETHER;
	char names[TOGETHER][64];
	int r;

	if (!ns)
		return err_sys(e, ENOMEM, "fork");
	for (unsigned i = 0; i < n; i++) {
		creation_init(&ns[i], c);
		name_it(names[i], f->name, f->numbered, first + i + 1);
	}
	if (first == 0 && early->at == CREATION_STARTED) {
		ns[0] = *early;
		creation_init(early, c);
	}
	r = creation_fork(ns, n, &from->of, names, e);
	if (r == 0)
		r = finish(ns, n, f, first, e);
	for (unsigned i = 0; i < n; i++)
		creation_done(&ns[i]);
	return r;
}

static int fork_all(struct cay *c, const struct fork_source *from, const struct fork_spec *f,
		    struct creation *early, struct err *e)
{
	int r = 0;

	for (unsigned first = 0; first < f->count && r == 0; first += TOGETHER)
		r = fork_some(c, from, f, early, first, e);
	/* The pool may be short now: refill it afterwards. */
	c->after |= AFTER_POOL;
	return r < 0 ? -1 : 0;
}

int fork_from(struct cay *c, const struct fork_source *from, const struct fork_spec *f,
	      struct err *e)
{
	struct creation none;

	creation_init(&none, c);
	return fork_all(c, from, f, &none, e);
}

static int check(const struct fork_spec *f, struct err *e)
{
	if (f->count < 1 || f->count > FORK_MOST) {
		(void)err_set(e, ERR_INVALID, "%u: at most %d", f->count, FORK_MOST);
		return err_field(e, "count");
	}
	if (f->name && !state_name_ok(f->name)) {
		(void)err_set(e, ERR_INVALID,
			      "'%.200s': letters, digits and '_.-', a letter or digit first",
			      f->name);
		return err_field(e, "name");
	}
	return 0;
}

static int warn_live(struct cay *c, const struct fork_source *from, struct err *e)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);

	if (catalog_recipe(c->catalog, from->of.recipe_of, &recipe, e) < 0)
		return -1;
	return start_warn_live(c, buf_str(&recipe), from->of.top, e);
}

int op_fork(struct cay *c, const char *ref, const struct fork_spec *f, struct err *e)
{
	auto_done(creation_done) struct creation early = { CREATION_INIT };
	struct fork_source from = { 0 };
	struct err ignored = { 0 };
	int r;

	if (check(f, e) < 0)
		return -1;
	creation_init(&early, c);
	/* Start a warden while we read the catalog, unless a ready sandbox may exist. */
	r = ready_exists(&c->state) ? 0 : creation_start(&early, e);
	if (r == 0)
		r = cay_catalog(c, e);
	if (r == 0)
		r = fork_source_open(c, ref, &from, e);
	if (r == 0 && f->owner)
		(void)str_copy(from.of.owner, sizeof from.of.owner, str_of(f->owner));
	if (r == 0)
		r = warn_live(c, &from, e);
	if (r == 0)
		r = fork_all(c, &from, f, &early, e);
	(void)creation_destroy(&early, &ignored);
	fork_source_close(c, &from);
	return r;
}
