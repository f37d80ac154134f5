/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: a snapshot to roll back to, or to forget. */
#include "ops/snapshot.h"

#include "ops/layers_free.h"

static void fill(struct tx_result *ret, const char *sandbox, const char *transaction)
{
	(void)str_copy(ret->id, sizeof ret->id, str_of(sandbox));
	(void)str_copy(ret->transaction, sizeof ret->transaction, str_of(transaction));
}

int op_tx_begin(struct cay *c, const char *ref, bool alone, struct tx_result *ret, struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	struct snapshot_row row = { .kind = SNAPSHOT_TX };

	if (cay_catalog(c, e) < 0 || operation_open(&m, c, ref, e) < 0)
		return -1;
	m.alone = alone;
	if (operation_snapshot(&m, &row, NULL, e) < 0) {
		if (!alone || e->kind != ERR_CONFLICT)
			return -1;
		(void)err_ctx(e, "an abort would undo the changes of others too");
		e->hint[0] = '\0';
		return err_code(e, "tx.not_alone", m.row.id);
	}
	fill(ret, m.row.id, row.id);
	return 0;
}

/* Finds the named transaction, or the innermost. */
static int find_tx(struct cay *c, const char *sandbox, const char *transaction,
		   struct snapshot_row *ret, struct err *e)
{
	int r = transaction ? catalog_get_snapshot(c->catalog, transaction, ret, e)
			    : catalog_last_snapshot(c->catalog, sandbox, SNAPSHOT_TX, ret, e);

	if (r != 0)
		return r < 0 ? -1 : 0;
	(void)err_set(e, ERR_CONFLICT, "no transaction is open in sandbox '%s'", sandbox);
	return err_code(e, "tx.none", sandbox);
}

int op_tx_commit(struct cay *c, const char *ref, const char *transaction, struct tx_result *ret,
		 struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	auto_done(snapshot_row_done) struct snapshot_row tx = { 0 };

	if (cay_catalog(c, e) < 0)
		return -1;
	/* A commit of a known transaction does not touch the sandbox: no need to lock it. */
	if (!transaction && operation_open(&m, c, ref, e) < 0)
		return -1;
	if (find_tx(c, transaction ? ref : m.row.id, transaction, &tx, e) < 0 ||
	    catalog_del_snapshot(c->catalog, tx.id, e) < 0)
		return -1;
	fill(ret, tx.sandbox, tx.id);
	return 0;
}

int op_tx_abort(struct cay *c, const char *ref, const char *transaction, bool force,
		struct tx_result *ret, struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	auto_done(snapshot_row_done) struct snapshot_row tx = { 0 };

	if (cay_catalog(c, e) < 0 || operation_open(&m, c, ref, e) < 0 ||
	    find_tx(c, m.row.id, transaction, &tx, e) < 0 ||
	    operation_rollback(&m, &tx, force, NULL, e) < 0 ||
	    catalog_del_snapshot(c->catalog, tx.id, e) < 0)
		return -1;
	layers_free_soon(c->catalog, &c->state);
	fill(ret, m.row.id, tx.id);
	return 0;
}
