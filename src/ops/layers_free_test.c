/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/layers_free.h"
#include "store/db.h"
#include "store/snapshots.h"
#include "store/store_test.h"

static struct state s;
static struct catalog *c;

static void begin(void)
{
	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
}

static void make(const char *path)
{
	CHECK(mkdirat(s.fd, path, 0700) == 0);
}

static int synced; /* syncs of the catalog while the layer still exists */

/* Replaces the library function. */
int fdatasync(int fd)
{
	char link[32], path[512] = "";

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	CHECK(readlink(link, path, sizeof path - 1) > 0);
	synced += strstr(path, "/catalog.db-wal") && t_there(&s, "layers/aaaaaaaaaa");
	return 0;
}

static void unknown_layers_are_removed(void)
{
	uint64_t bytes;
	int n;

	begin();
	make("layers/aaaaaaaaaa");
	make("layers/new-bbbbbbbbbb");
	make("layers/Else");
	t_put(&s, "layers/aaaaaaaaaa/f", "text");
	synced = 0;
	OK(layers_free(c, &s, &n, &bytes, &t_e));
	CHECK(n == 3 && bytes >= 512);
	/* A power failure must not bring back references to removed layers. */
	CHECK(synced > 0);
	CHECK(!t_there(&s, "layers/aaaaaaaaaa") && !t_there(&s, "layers/new-bbbbbbbbbb"));
	catalog_close(c);
}

/* A warden may be copying into it now. */
static void a_layer_that_is_being_made_stays(void)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT,
				    .snapshot_kind = SNAPSHOT_USER,
				    .sandbox = "aaaaaaaa",
				    .layer = "bbbbbbbbbb",
				    .snapshot = "cccccccccc" };
	int n;

	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	OK(catalog_op_begin(c, &op, &t_e));
	make("layers/new-bbbbbbbbbb");
	OK(layers_free(c, &s, &n, NULL, &t_e));
	CHECK(n == 0 && t_there(&s, "layers/new-bbbbbbbbbb"));
	OK(catalog_op_cancel(c, "aaaaaaaa", &t_e));
	OK(layers_free(c, &s, &n, NULL, &t_e));
	CHECK(n == 1 && !t_there(&s, "layers/new-bbbbbbbbbb"));
	catalog_close(c);
}

/* Makes a layer and a snapshot that holds it while forks are made. Its sandbox is gone. */
static void make_hold(const char *lock_of, int *ret_lock)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT,
				    .snapshot_kind = SNAPSHOT_FORK,
				    .sandbox = "aaaaaaaa",
				    .layer = "bbbbbbbbbb",
				    .snapshot = "cccccccccc" };
	struct sandbox_row row = { .id = "aaaaaaaa", .template_ = "t", .recipe = { "", 1 } };

	begin();
	OK(state_lock(&s, lock_of, ret_lock, &t_e));
	OK(catalog_add_sandbox(c, &row, false, &t_e));
	OK(catalog_op_begin(c, &op, &t_e));
	make("layers/bbbbbbbbbb");
	OK(catalog_op_done(c, &op, OPERATION_COPIED, "", &t_e));
	OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
}

static void a_fork_pins_the_layers_until_it_is_dead(void)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(64);
	int n, lock;

	make_hold("cccccccccc", &lock);
	OK(layers_free(c, &s, &n, NULL, &t_e));
	CHECK(n == 0 && t_there(&s, "layers/bbbbbbbbbb"));
	OK(catalog_recipe(c, "aaaaaaaa", &recipe, &t_e));
	CHECK(close(lock) == 0);
	OK(layers_free(c, &s, &n, NULL, &t_e));
	CHECK(n == 1 && !t_there(&s, "layers/bbbbbbbbbb"));
	/* The recipe contains the values of the environment. */
	FAILS(catalog_recipe(c, "aaaaaaaa", &recipe, &t_e), ERR_NOT_FOUND);
	catalog_close(c);
}

/* The warden was told to mount this layer before the snapshot is removed. */
static void the_layer_of_a_rollback_stays(void)
{
	struct operation_row op = { .kind = OPERATION_ROLLBACK,
				    .sandbox = "aaaaaaaa",
				    .layer = "bbbbbbbbbb" };
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n;
	int freed;

	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	make("layers/bbbbbbbbbb");
	OK(db_do(c, &t_e, "INSERT INTO layers(id, created_ns) VALUES('bbbbbbbbbb', 0)", ""));
	OK(catalog_op_begin(c, &op, &t_e));
	OK(layers_free(c, &s, &freed, NULL, &t_e));
	CHECK(freed == 0 && t_there(&s, "layers/bbbbbbbbbb"));
	OK(catalog_stack(c, "bbbbbbbbbb", &ids, &n, &t_e));
	OK(catalog_op_cancel(c, "aaaaaaaa", &t_e));
	OK(layers_free(c, &s, &freed, NULL, &t_e));
	CHECK(freed == 1 && !t_there(&s, "layers/bbbbbbbbbb"));
	catalog_close(c);
}

static void only_one_process_works_on_layers(void)
{
	int one = FD_NONE, two = FD_NONE;

	begin();
	OK(layers_lock(&s, true, &one, &t_e));
	FAILS(layers_lock(&s, false, &two, &t_e), ERR_CONFLICT);
	/* A process that only cleans up behind itself leaves the work to the lock's holder. */
	make("layers/aaaaaaaaaa");
	layers_free_soon(c, &s);
	CHECK(t_there(&s, "layers/aaaaaaaaaa"));
	CHECK(close(one) == 0);
	layers_free_soon(c, &s);
	CHECK(!t_there(&s, "layers/aaaaaaaaaa"));
	OK(layers_lock(&s, false, &two, &t_e));
	CHECK(close(two) == 0);
	catalog_close(c);
}

int main(void)
{
	const struct t_case cases[] = {
		T(unknown_layers_are_removed),
		T(a_layer_that_is_being_made_stays),
		T(a_fork_pins_the_layers_until_it_is_dead),
		T(the_layer_of_a_rollback_stays),
		T(only_one_process_works_on_layers),
	};

	return t_run(cases, sizeof cases / sizeof cases[0]);
}
