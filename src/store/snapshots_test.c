/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"
#include "store/snapshots.h"
#include "store/store_test.h"

static struct state s;
static struct catalog *cat;

static void begin(void)
{
	struct sandbox_row a = t_row("aaaaaaaa", "", false), b = t_row("bbbbbbbb", "", false);

	a.recipe = b.recipe = (struct str){ "", 1 };
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
	OK(catalog_add_sandbox(cat, &a, false, &t_e));
	OK(catalog_add_sandbox(cat, &b, false, &t_e));
}

static struct operation_row op_of(const char *box, const char *layer, const char *snapshot,
				  const char *name)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT };

	(void)str_copy(op.sandbox, sizeof op.sandbox, str_of(box));
	(void)str_copy(op.layer, sizeof op.layer, str_of(layer));
	(void)str_copy(op.snapshot, sizeof op.snapshot, str_of(snapshot));
	(void)str_copy(op.name, sizeof op.name, str_of(name));
	return op;
}

static void seal(const char *box, const char *layer, const char *snapshot)
{
	struct operation_row op = op_of(box, layer, snapshot, "");
	char top[ID_SIZE];

	OK(catalog_op_begin(cat, &op, &t_e));
	OK(catalog_top(cat, box, top, &t_e));
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, top, &t_e));
}

/*
 * The second snapshot would be sealed but could never be recorded, and neither could later
 * operations.
 */
static void a_name_is_taken_when_an_operation_begins(void)
{
	struct operation_row one = op_of("aaaaaaaa", "layer00001", "snap000001", "x");
	struct operation_row two = op_of("bbbbbbbb", "layer00002", "snap000002", "x");
	struct snapshot_row row = { .name = "x", .sandbox = "bbbbbbbb" };

	begin();
	OK(catalog_op_begin(cat, &one, &t_e));
	FAILS(catalog_op_begin(cat, &two, &t_e), ERR_CONFLICT);
	SAYS(t_e.msg, "'x'");
	FAILS(catalog_add_snapshot(cat, &row, &t_e), ERR_CONFLICT);
	OK(catalog_op_done(cat, &one, OPERATION_SEALED, "", &t_e));
	FAILS(catalog_op_begin(cat, &two, &t_e), ERR_CONFLICT);
	OK(catalog_del_snapshot(cat, "snap000001", &t_e));
	OK(catalog_op_begin(cat, &two, &t_e));
	OK(catalog_op_cancel(cat, "bbbbbbbb", &t_e));
	/* A rollback to a named snapshot does not take the name. */
	two.kind = OPERATION_ROLLBACK;
	OK(catalog_op_begin(cat, &two, &t_e));
	one = op_of("aaaaaaaa", "layer00003", "snap000003", "x");
	OK(catalog_op_begin(cat, &one, &t_e));
	catalog_close(cat);
}

/* The warden died after its answer, and reconcile was faster than the client. */
static void an_operation_is_settled_once(void)
{
	struct operation_row op = { .kind = OPERATION_ROLLBACK,
				    .sandbox = "aaaaaaaa",
				    .layer = "layer00001" };
	char top[ID_SIZE];

	begin();
	seal("aaaaaaaa", "layer00001", "snap000001");
	OK(catalog_op_begin(cat, &op, &t_e));
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, "layer00001", &t_e));
	seal("aaaaaaaa", "layer00002", "snap000002");
	FAILS(catalog_op_done(cat, &op, OPERATION_SEALED, "layer00001", &t_e), ERR_CONFLICT);
	OK(catalog_top(cat, "aaaaaaaa", top, &t_e));
	CHECK_STR(top, "layer00002");
	catalog_close(cat);
}

static int64_t count_uses(void)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	OK(db_query(cat, &q, &t_e, "SELECT count(*) FROM uses", ""));
	CHECK(db_step(cat, q, &t_e) == 1);
	return sqlite3_column_int64(q, 0);
}

/* A rollback to the current layer may or may not have switched. */
static void mounted_layers_are_released_only_after_a_switch(void)
{
	struct operation_row op = { .kind = OPERATION_ROLLBACK,
				    .sandbox = "aaaaaaaa",
				    .layer = "layer00001" };

	begin();
	seal("aaaaaaaa", "layer00001", "snap000001");
	OK(db_do(cat, &t_e, "INSERT INTO uses VALUES('aaaaaaaa', 'layer00000')", ""));
	OK(catalog_op_begin(cat, &op, &t_e));
	OK(catalog_op_done(cat, &op, OPERATION_UNCHANGED, "layer00001", &t_e));
	CHECK(count_uses() == 1);
	OK(catalog_op_begin(cat, &op, &t_e));
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, "layer00001", &t_e));
	CHECK(count_uses() == 0);
	catalog_close(cat);
}

/* Transactions nest by this order. */
static void the_latest_is_the_latest_also_when_the_clock_was_set_back(void)
{
	struct snapshot_row row = { 0 };

	begin();
	seal("aaaaaaaa", "layer00001", "snap000009");
	OK(db_do(cat, &t_e, "UPDATE snapshots SET created_ns = created_ns + 3600000000000", ""));
	seal("aaaaaaaa", "layer00002", "snap000005");
	CHECK(catalog_last_snapshot(cat, "aaaaaaaa", SNAPSHOT_USER, &row, &t_e) == 1);
	CHECK_STR(row.id, "snap000005");
	snapshot_row_done(&row);
	catalog_close(cat);
}

/* Showing the rest of the stack would show wrong files. */
static void a_stack_that_is_not_whole_is_refused(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;

	begin();
	seal("aaaaaaaa", "layer00001", "snap000001");
	seal("aaaaaaaa", "layer00002", "snap000002");
	OK(catalog_stack(cat, "layer00002", &ids, &n, &t_e));
	CHECK(n == 2);
	free(TAKE_PTR(ids));
	OK(db_do(cat, &t_e, "DELETE FROM layers WHERE id = 'layer00001'", ""));
	FAILS(catalog_stack(cat, "layer00002", &ids, &n, &t_e), ERR_FAILED);
	SAYS(t_e.msg, "'layer00001'");
	CHECK(t_e.sys == ESTALE && !ids);
	catalog_close(cat);
}

static bool has_snapshot(const char *id)
{
	struct snapshot_row row = { 0 };
	bool has = catalog_find_snapshot(cat, id, &row, &t_e) == 0;

	snapshot_row_done(&row);
	return has;
}

static void put_kind(enum snapshot_kind kind, const char *layer, const char *snapshot)
{
	struct operation_row op = op_of("aaaaaaaa", layer, snapshot, "");
	char top[ID_SIZE];

	op.snapshot_kind = kind;
	OK(catalog_op_begin(cat, &op, &t_e));
	OK(catalog_top(cat, "aaaaaaaa", top, &t_e));
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, top, &t_e));
}

/* Snapshots of a user stay; the start of a transaction is deleted with its sandbox. */
static void only_snapshots_of_a_removed_sandbox_stay(void)
{
	begin();
	put_kind(SNAPSHOT_USER, "layer00001", "snap000001");
	put_kind(SNAPSHOT_TX, "layer00002", "snap000002");
	put_kind(SNAPSHOT_LOST, "layer00003", "snap000003");
	OK(catalog_del_sandbox(cat, "aaaaaaaa", &t_e));
	CHECK(has_snapshot("snap000001"));
	CHECK(!has_snapshot("snap000002") && !has_snapshot("snap000003"));
	catalog_close(cat);
}

/*
 * The killed client never heard of this transaction: an abort of the previous one would stop here.
 */
static void a_transaction_that_nobody_heard_of_was_not_begun(void)
{
	struct operation_row op = op_of("aaaaaaaa", "layer00001", "snap000001", ""), found = { 0 };
	char top[ID_SIZE];

	begin();
	op.snapshot_kind = SNAPSHOT_TX;
	OK(catalog_op_begin(cat, &op, &t_e));
	CHECK(catalog_op_find(cat, "aaaaaaaa", &found, &t_e) == 1);
	OK(catalog_op_done(cat, &found, OPERATION_SEALED, "", &t_e));
	operation_row_done(&found);
	CHECK(!has_snapshot("snap000001"));
	OK(catalog_top(cat, "aaaaaaaa", top, &t_e));
	CHECK_STR(top, "layer00001");
	CHECK(catalog_op_find(cat, "aaaaaaaa", &found, &t_e) == 0);
	catalog_close(cat);
}

static int synced;

/* Replaces the library function, because data in memory only cannot be observed. */
int fdatasync(int fd)
{
	char link[32], path[512] = "";

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	CHECK(readlink(link, path, sizeof path - 1) > 0);
	synced += strstr(path, "/catalog.db-wal") != NULL;
	return 0;
}

/* Next the files move: after a power failure their new place would be unknown. */
static void an_operation_is_on_the_disk_when_it_begins(void)
{
	struct operation_row op = op_of("aaaaaaaa", "layer00001", "snap000001", "");

	begin();
	OK(catalog_op_cancel(cat, "aaaaaaaa", &t_e));
	synced = 0;
	OK(catalog_op_begin(cat, &op, &t_e));
	CHECK(synced > 0);
	synced = 0;
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, "", &t_e));
	CHECK(synced == 0);
	OK(catalog_sync(cat, &t_e));
	CHECK(synced > 0);
	catalog_close(cat);
}

T_MAIN(T(an_operation_is_on_the_disk_when_it_begins), T(a_name_is_taken_when_an_operation_begins),
       T(an_operation_is_settled_once), T(mounted_layers_are_released_only_after_a_switch),
       T(the_latest_is_the_latest_also_when_the_clock_was_set_back),
       T(a_stack_that_is_not_whole_is_refused), T(only_snapshots_of_a_removed_sandbox_stay),
       T(a_transaction_that_nobody_heard_of_was_not_begun))
