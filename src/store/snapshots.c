/* SPDX-License-Identifier: Apache-2.0 */
#include "store/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/db.h"

#define COLUMNS \
	"SELECT s.id, s.name, s.note, s.kind, s.sandbox, s.top, s.created_ns, r.template, r.spec" \
	" FROM snapshots s LEFT JOIN recipes r ON r.id = s.sandbox "

static const char insert_snapshot[] =
	"INSERT INTO snapshots(id, name, note, kind, sandbox, top, created_ns)"
	" VALUES(?1, ?2, ?3, ?4, ?5, ?6, max(?7, (SELECT ifnull(max(created_ns), 0) + 1"
	" FROM snapshots WHERE sandbox = ?5)))";
static const char delete_snapshot[] = "DELETE FROM snapshots WHERE id = ?1 RETURNING sandbox";
/* A recipe that neither a sandbox nor a snapshot has. */
static const char delete_recipe[] = "DELETE FROM recipes WHERE id = ?1"
				    " AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE id = ?1)"
				    " AND NOT EXISTS (SELECT 1 FROM snapshots WHERE sandbox = ?1)";
static const char delete_operation[] = "DELETE FROM operations WHERE sandbox = ?1";
static const char delete_uses[] = "DELETE FROM uses WHERE sandbox = ?1";
static const char update_top[] = "UPDATE sandboxes SET top = ?2 WHERE id = ?1";
static const char insert_layer[] =
	"INSERT OR IGNORE INTO layers(id, parent, created_ns) VALUES(?1, ?2, ?3)";

static const char *or_null(const char *text)
{
	return text && text[0] ? text : NULL;
}

void snapshot_row_done(struct snapshot_row *row)
{
	free(row->note);
	free(row->spec);
	row->note = row->spec = NULL;
}

void operation_row_done(struct operation_row *row)
{
	free(row->note);
	row->note = NULL;
}

static int read_row(sqlite3_stmt *q, struct snapshot_row *ret, struct err *e)
{
	struct snapshot_row row = { 0 };

	db_text(q, 0, row.id, sizeof row.id);
	db_text(q, 1, row.name, sizeof row.name);
	row.kind = (enum snapshot_kind)sqlite3_column_int(q, 3);
	db_text(q, 4, row.sandbox, sizeof row.sandbox);
	db_text(q, 5, row.top, sizeof row.top);
	row.created_ns = (uint64_t)sqlite3_column_int64(q, 6);
	db_text(q, 7, row.template_, sizeof row.template_);
	if (db_text_dup(q, 2, &row.note, e) < 0 || db_text_dup(q, 8, &row.spec, e) < 0) {
		snapshot_row_done(&row);
		return -1;
	}
	*ret = row;
	return 1;
}

/* 1: found. 0: none. */
static int one(struct catalog *c, const char *where, const char *value, struct snapshot_row *ret,
	       struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	char sql[512];
	int r;

	(void)snprintf(sql, sizeof sql, COLUMNS "WHERE %s", where);
	if (db_query(c, &q, e, sql, "t", value) < 0)
		return -1;
	r = db_step(c, q, e);
	return r <= 0 ? r : read_row(q, ret, e);
}

static int by_prefix(struct catalog *c, const char *ref, struct snapshot_row *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e,
		     COLUMNS "WHERE s.id >= ?1 AND s.id < ?1 || '~' ORDER BY s.id LIMIT 2", "t",
		     ref) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0 || read_row(q, ret, e) < 0)
		return r < 0 || r > 0 ? -1 : 0;
	r = db_step(c, q, e);
	if (r == 0)
		return 1;
	snapshot_row_done(ret);
	return r < 0 ? -1 : err_set(e, ERR_INVALID, "'%s' is ambiguous among snapshots", ref);
}

int catalog_get_snapshot(struct catalog *c, const char *id, struct snapshot_row *ret, struct err *e)
{
	return one(c, "s.id = ?1", id, ret, e);
}

int catalog_find_snapshot(struct catalog *c, const char *ref, struct snapshot_row *ret,
			  struct err *e)
{
	int r;

	if (strncmp(ref, "snap:", 5) == 0)
		ref += 5;
	if (!state_id_ok(ref) && !state_name_ok(ref))
		return err_set(e, ERR_INVALID, "'%.80s' is not a snapshot id or name", ref);
	r = catalog_get_snapshot(c, ref, ret, e);
	if (r == 0)
		r = one(c, "s.name = ?1", ref, ret, e);
	if (r == 0)
		r = by_prefix(c, ref, ret, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	err_set(e, ERR_NOT_FOUND, "no snapshot '%s'", ref);
	return err_code(e, "snapshot.not_found", NULL);
}

int catalog_last_snapshot(struct catalog *c, const char *sandbox, enum snapshot_kind kind,
			  struct snapshot_row *ret, struct err *e)
{
	char where[128];

	(void)snprintf(where, sizeof where,
		       "s.sandbox = ?1 AND s.kind = %d ORDER BY s.created_ns DESC, s.id LIMIT 1",
		       (int)kind);
	return one(c, where, sandbox, ret, e);
}

/* Collect the ids first: fn may use the catalog, and rows may be deleted meanwhile. */
int catalog_each_snapshot(struct catalog *c, const char *sandbox,
			  int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx,
			  struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;
	int r;

	if (db_query(c, &q, e,
		     "SELECT id FROM snapshots WHERE (?1 IS NULL OR sandbox = ?1) AND kind <> ?2"
		     " ORDER BY created_ns, id",
		     "ti", sandbox, (int64_t)SNAPSHOT_FORK) < 0 ||
	    db_id_list(c, q, &ids, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct snapshot_row row = { 0 };
		bool stop;

		r = catalog_get_snapshot(c, ids[i], &row, e);
		if (r < 0)
			return -1;
		if (r == 0)
			continue;
		stop = fn(ctx, &row) != 0;
		snapshot_row_done(&row);
		if (stop)
			break;
	}
	return 0;
}

/* A snapshot in progress already has its name: otherwise its end could not be acknowledged. */
static int check_name(struct catalog *c, const char *name, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (!name[0])
		return 0;
	if (!state_name_ok(name)) {
		err_set(e, ERR_INVALID, "'%s' cannot be the name of a snapshot", name);
		return err_hint(
			e, "use up to 63 letters, digits, '_', '.', '-', not the last three first");
	}
	if (db_query(c, &q, e,
		     "SELECT id FROM snapshots WHERE name = ?1 UNION ALL"
		     " SELECT snapshot FROM operations WHERE name = ?1 AND kind = ?2",
		     "ti", name, (int64_t)OPERATION_SNAPSHOT) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	err_set(e, ERR_CONFLICT, "the name '%s' is taken by snapshot '%s'", name,
		(const char *)sqlite3_column_text(q, 0));
	return err_code(e, "snapshot.name_taken", name);
}

/* Each snapshot of a sandbox is later than the one before, whatever the clock says. */
static int insert(struct catalog *c, const struct snapshot_row *row, struct err *e)
{
	return db_do(c, e, insert_snapshot, "tttitti", row->id, or_null(row->name), row->note,
		     (int64_t)row->kind, row->sandbox, or_null(row->top), (int64_t)row->created_ns);
}

int catalog_add_snapshot(struct catalog *c, struct snapshot_row *row, struct err *e)
{
	if (!row->id[0] && state_id_new(row->id, e) < 0)
		return -1;
	if (!row->created_ns)
		row->created_ns = clock_real_ns();
	if (db_begin(c, false, e) < 0)
		return -1;
	if (check_name(c, row->name, e) < 0)
		return db_end(c, -1, e);
	return db_end(c, insert(c, row, e), e);
}

/* 1: deleted one of this sandbox. 0: none. */
static int take_snapshot(struct catalog *c, const char *id, char sandbox[ID_SIZE], struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r = db_query(c, &q, e, delete_snapshot, "t", id);

	if (r == 0)
		r = db_step(c, q, e);
	if (r > 0)
		db_text(q, 0, sandbox, ID_SIZE);
	return r;
}

int catalog_del_snapshot(struct catalog *c, const char *id, struct err *e)
{
	char sandbox[ID_SIZE];
	int r;

	if (db_begin(c, false, e) < 0)
		return -1;
	r = take_snapshot(c, id, sandbox, e);
	if (r > 0)
		r = db_do(c, e, delete_recipe, "t", sandbox);
	return db_end(c, r, e);
}

int db_del_state(struct catalog *c, const char *id, struct err *e)
{
	if (db_do(c, e, delete_operation, "t", id) < 0 || db_do(c, e, delete_uses, "t", id) < 0 ||
	    db_do(c, e, "DELETE FROM snapshots WHERE sandbox = ?1 AND kind IN (?2, ?3)", "tii", id,
		  (int64_t)SNAPSHOT_TX, (int64_t)SNAPSHOT_LOST) < 0)
		return -1;
	return db_do(c, e, delete_recipe, "t", id);
}

int catalog_recipe_row(struct catalog *c, const char *sandbox, struct buf *ret,
		       struct sandbox_row *row, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT body, template, spec, owner FROM recipes WHERE id = ?1", "t",
		     sandbox) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r == 0) {
		err_set(e, ERR_NOT_FOUND, "sandbox '%s' keeps no state", sandbox);
		return err_code(e, "sandbox.keeps_nothing", NULL);
	}
	if (r > 0 &&
	    buf_add(ret, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)) < 0)
		return err_sys(e, ENOMEM, "read a recipe");
	if (r < 0 || !row)
		return r < 0 ? -1 : 0;
	db_text(q, 1, row->template_, sizeof row->template_);
	db_text(q, 3, row->owner, sizeof row->owner);
	return db_text_dup(q, 2, &row->spec, e);
}

int catalog_recipe(struct catalog *c, const char *sandbox, struct buf *ret, struct err *e)
{
	return catalog_recipe_row(c, sandbox, ret, NULL, e);
}

int catalog_set_recipe(struct catalog *c, const char *sandbox, struct str body, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(
		c, db_do(c, e, "UPDATE recipes SET body = ?2 WHERE id = ?1", "tb", sandbox, body),
		e);
}

int catalog_recipes_hold(struct catalog *c, const char *text, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e,
		     "SELECT 1 FROM recipes WHERE instr(body, ?1) UNION ALL"
		     " SELECT 1 FROM pools WHERE instr(recipe, ?1) LIMIT 1",
		     "b", str_of(text)) < 0)
		return -1;
	return db_step(c, q, e);
}

/* Adds one; *n counts. */
static int push_id(char (**ids)[ID_SIZE], size_t *n, size_t *room, const char *id, struct err *e)
{
	if (*n == *room) {
		void *more = reallocarray(*ids, *room + 32, 2 * sizeof **ids);

		if (!more)
			return err_sys(e, ENOMEM, "cannot read the catalog");
		*ids = more;
		*room = (*room + 32) * 2;
	}
	(void)str_copy((*ids)[(*n)++], ID_SIZE, str_of(id));
	return 0;
}

/*
 * ESTALE if a layer is missing. One query per step: preparing a recursive query costs more than all
 * steps.
 */
static int walk_down(struct catalog *c, const char *top, char (**ret)[ID_SIZE], size_t *ret_n,
		     struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	char id[ID_SIZE] = "";
	size_t room = 0;
	int r;

	(void)str_copy(id, sizeof id, str_of(top));
	if (db_query(c, &q, e, "SELECT parent FROM layers WHERE id = ?1", "t", id) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0) {
		if (push_id(ret, ret_n, &room, id, e) < 0)
			return -1;
		db_text(q, 0, id, sizeof id);
		if (!id[0])
			return 0;
		/* Binds `id` itself, with its length: ids may differ in length. */
		(void)sqlite3_reset(q);
		if (sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC) != SQLITE_OK)
			return err_sys(e, ENOMEM, "cannot read the catalog");
	}
	if (r == 0) {
		err_set(e, ERR_FAILED, "layer '%s' is not in the catalog", id);
		e->sys = ESTALE;
	}
	return -1;
}

int catalog_stack(struct catalog *c, const char *top, char (**ret)[ID_SIZE], size_t *ret_n,
		  struct err *e)
{
	bool alone = sqlite3_get_autocommit(c->db) != 0;
	int r;

	*ret = NULL;
	*ret_n = 0;
	if (!top[0])
		return 0;
	/* Other processes may merge layers between two steps. */
	if (alone && db_do(c, e, "BEGIN", "") < 0)
		return -1;
	r = walk_down(c, top, ret, ret_n, e);
	if (alone)
		r = db_end(c, r, e);
	if (r == 0)
		return 0;
	free(*ret);
	*ret = NULL;
	*ret_n = 0;
	return -1;
}

int catalog_top(struct catalog *c, const char *id, char ret[ID_SIZE], struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT top FROM sandboxes WHERE id = ?1", "t", id) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", id);
	if (r > 0)
		db_text(q, 0, ret, ID_SIZE);
	return r < 0 ? -1 : 0;
}

int catalog_op_find(struct catalog *c, const char *sandbox, struct operation_row *ret,
		    struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	struct operation_row op = { 0 };
	int r;

	if (db_query(c, &q, e,
		     "SELECT kind, layer, snapshot, name, snapshot_kind, note FROM operations"
		     " WHERE sandbox = ?1",
		     "t", sandbox) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	(void)str_copy(op.sandbox, sizeof op.sandbox, str_of(sandbox));
	op.kind = (enum op_kind)sqlite3_column_int(q, 0);
	db_text(q, 1, op.layer, sizeof op.layer);
	db_text(q, 2, op.snapshot, sizeof op.snapshot);
	db_text(q, 3, op.name, sizeof op.name);
	op.snapshot_kind = (enum snapshot_kind)sqlite3_column_int(q, 4);
	if (db_text_dup(q, 5, &op.note, e) < 0)
		return -1;
	op.unheard = true;
	*ret = op;
	return 1;
}

static int begin(struct catalog *c, const struct operation_row *op, struct err *e)
{
	struct operation_row other = { 0 };
	char top[ID_SIZE];
	int r = check_name(c, op->kind == OPERATION_SNAPSHOT ? op->name : "", e);

	if (r == 0)
		r = catalog_op_find(c, op->sandbox, &other, e);
	operation_row_done(&other);
	if (r != 0)
		return r < 0 ? -1
			     : err_set(e, ERR_CONFLICT,
				       "another snapshot or rollback of '%s' is under way",
				       op->sandbox);
	/* It may have been removed while we waited for its lock. */
	if (catalog_top(c, op->sandbox, top, e) < 0)
		return -1;
	return db_do(c, e,
		     "INSERT INTO operations(sandbox, kind, layer, snapshot, name, note,"
		     " snapshot_kind) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		     "titttti", op->sandbox, (int64_t)op->kind, or_null(op->layer),
		     or_null(op->snapshot), or_null(op->name), op->note,
		     (int64_t)op->snapshot_kind);
}

/*
 * Durable: otherwise, after a power failure the files could be moved without a record of their
 * place. Everything that the sandbox wrote would be a layer without a reference.
 */
int catalog_op_begin(struct catalog *c, const struct operation_row *op, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, begin(c, op, e), e);
}

static int forget_op(struct catalog *c, const char *sandbox, struct err *e)
{
	return db_do(c, e, delete_operation, "t", sandbox);
}

int catalog_op_cancel(struct catalog *c, const char *sandbox, struct err *e)
{
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c, forget_op(c, sandbox, e), e);
}

static int set_top(struct catalog *c, const char *sandbox, const char *top, struct err *e)
{
	return db_do(c, e, update_top, "tt", sandbox, or_null(top));
}

static int put_layer(struct catalog *c, const char *id, const char *below, struct err *e)
{
	return db_do(c, e, insert_layer, "tti", id, or_null(below), (int64_t)clock_real_ns());
}

/* Take the row to end it: another process may have done so already. */
static int take_op(struct catalog *c, const char *sandbox, struct err *e)
{
	if (forget_op(c, sandbox, e) < 0)
		return -1;
	if (sqlite3_changes(c->db))
		return 0;
	err_set(e, ERR_CONFLICT, "sandbox '%s' has ended meanwhile", sandbox);
	return err_code(e, "sandbox.ended_meanwhile", sandbox);
}

/* The sandbox was given the current stack, and nothing else is mounted there. */
static int forget_uses(struct catalog *c, const char *sandbox, struct err *e)
{
	return db_do(c, e, delete_uses, "t", sandbox);
}

static int put_result(struct catalog *c, const struct operation_row *op, enum op_result result,
		      const char *below, struct err *e)
{
	struct snapshot_row row = { .kind = op->snapshot_kind, .created_ns = clock_real_ns() };
	const char *seen = result == OPERATION_UNCHANGED ? below : op->layer;

	if (take_op(c, op->sandbox, e) < 0)
		return -1;
	if (result == OPERATION_SEALED && forget_uses(c, op->sandbox, e) < 0)
		return -1;
	if (op->kind == OPERATION_ROLLBACK)
		return set_top(c, op->sandbox, op->layer, e);
	if (result != OPERATION_UNCHANGED && put_layer(c, op->layer, below, e) < 0)
		return -1;
	if (result == OPERATION_SEALED && set_top(c, op->sandbox, op->layer, e) < 0)
		return -1;
	/*
	 * No client was told that this transaction began, so an abort must not go back to it. A
	 * command is sent only after this row, so none has run in it.
	 */
	if (op->unheard && op->snapshot_kind == SNAPSHOT_TX)
		return forget_op(c, op->sandbox, e);
	(void)str_copy(row.id, sizeof row.id, str_of(op->snapshot));
	(void)str_copy(row.name, sizeof row.name, str_of(op->name));
	(void)str_copy(row.sandbox, sizeof row.sandbox, str_of(op->sandbox));
	(void)str_copy(row.top, sizeof row.top, str_of(seen));
	row.note = op->note;
	return insert(c, &row, e);
}

int catalog_op_done(struct catalog *c, const struct operation_row *op, enum op_result result,
		    const char *below, struct err *e)
{
	if (db_begin(c, false, e) < 0)
		return -1;
	return db_end(c, put_result(c, op, result, below, e), e);
}

/* Commits are in the log, or were flushed when they left it. This needs no disk space. */
int catalog_sync(struct catalog *c, struct err *e)
{
	auto_close int fd = FD_NONE;
	char path[sizeof c->path + sizeof "-wal"];

	(void)snprintf(path, sizeof path, "%s-wal", c->path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fdatasync(fd) < 0)
		return err_sys(e, errno, "cannot sync the catalog %s", c->path);
	return 0;
}
