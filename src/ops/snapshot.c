/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "ops/layers_free.h"

static int check_name(const char *name, struct err *e)
{
	if (!name || state_name_ok(name))
		return 0;
	(void)err_set(e, ERR_INVALID,
		      "'%.200s': letters, digits and '_.-', a letter or digit first", name);
	return err_field(e, "name");
}

int op_snapshot(struct cay *c, const struct snapshot_spec *spec, struct snapshot_result *ret,
		struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	struct snapshot_row row = { .note = (char *)spec->note };
	struct link_switched res = { 0 };

	if (check_name(spec->name, e) < 0)
		return -1;
	(void)snprintf(row.name, sizeof row.name, "%s", spec->name ? spec->name : "");
	if (cay_catalog(c, e) < 0 || operation_open(&m, c, spec->sandbox, e) < 0 ||
	    operation_snapshot(&m, &row, &res, e) < 0 || (spec->sync && operation_sync(&m, e) < 0))
		return -1;
	*ret = (struct snapshot_result){ .changed = res.sealed != OPERATION_UNCHANGED,
					 .took_us = res.duration_us,
					 .freeze_us = res.freeze_us };
	(void)str_copy(ret->id, sizeof ret->id, str_of(row.id));
	(void)str_copy(ret->name, sizeof ret->name, str_of(row.name));
	(void)str_copy(ret->sandbox, sizeof ret->sandbox, str_of(row.sandbox));
	(void)str_copy(ret->top, sizeof ret->top, str_of(row.top));
	return 0;
}

struct counting {
	int (*fn)(void *ctx, const struct snapshot_row *row);
	void *ctx;
	int n;
};

static int count_and_pass(void *arg, const struct snapshot_row *row)
{
	struct counting *k = arg;

	k->n++;
	return k->fn(k->ctx, row);
}

int op_snapshot_list(struct cay *c, const char *sandbox,
		     int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	struct counting k = { fn, ctx, 0 };
	struct err unknown = { 0 };
	const char *of = sandbox;

	if (cay_catalog(c, e) < 0)
		return -1;
	/* A removed sandbox may still have snapshots under its id. */
	if (sandbox && catalog_find(c->catalog, sandbox, &box, &unknown) == 0)
		of = box.id;
	if (catalog_each_snapshot(c->catalog, of, count_and_pass, &k, e) < 0)
		return -1;
	if (k.n || !sandbox || box.id[0])
		return 0;
	*e = unknown;
	return -1;
}

int op_snapshot_remove(struct cay *c, const char *ref, char ret_id[ID_SIZE], struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row row = { 0 };

	if (cay_catalog(c, e) < 0 || catalog_find_snapshot(c->catalog, ref, &row, e) < 0)
		return -1;
	if (row.kind == SNAPSHOT_TX) {
		err_set(e, ERR_CONFLICT, "snapshot '%s' is the begin of a transaction", row.id);
		return err_code(e, "snapshot.of_transaction", row.sandbox);
	}
	if (catalog_del_snapshot(c->catalog, row.id, e) < 0)
		return -1;
	(void)str_copy(ret_id, ID_SIZE, str_of(row.id));
	layers_free_soon(c->catalog, &c->state);
	return 0;
}

static int find_target(struct operation *m, const char *snapshot, struct snapshot_row *ret,
		       struct err *e)
{
	int r;

	if (snapshot)
		return catalog_find_snapshot(m->s->catalog, snapshot, ret, e);
	r = catalog_last_snapshot(m->s->catalog, m->row.id, SNAPSHOT_USER, ret, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no snapshot", m->row.id);
	return err_code(e, "snapshot.none", m->row.id);
}

int op_rollback(struct cay *c, const struct rollback_spec *spec, struct rollback_result *ret,
		struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	auto_done(snapshot_row_done) struct snapshot_row to = { 0 };
	struct link_switched res = { 0 };

	if (cay_catalog(c, e) < 0 || operation_open(&m, c, spec->sandbox, e) < 0 ||
	    find_target(&m, spec->snapshot, &to, e) < 0 ||
	    operation_rollback(&m, &to, spec->force, &res, e) < 0)
		return -1;
	*ret = (struct rollback_result){ .took_us = res.duration_us };
	(void)str_copy(ret->id, sizeof ret->id, str_of(m.row.id));
	(void)str_copy(ret->snapshot, sizeof ret->snapshot, str_of(to.id));
	return 0;
}
