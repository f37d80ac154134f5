/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/dir.h"
#include "ops/flatten_layers.h"
#include "ops/layers_free.h"
#include "store/db.h"
#include "store/snapshots.h"
#include "store/store_test.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { LAYERS = FLATTEN_RUN + FLATTEN_SPARE };

static struct state s;
static struct catalog *c;

static const char *layer_name(int n)
{
	static char id[ID_SIZE];

	snprintf(id, sizeof id, "layer%05d", n);
	return id;
}

/* Adds a layer with `files` files on top of the sandbox's stack. */
static void seal(int n, int files)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT, .snapshot_kind = SNAPSHOT_USER };
	char top[ID_SIZE], path[64];

	snprintf(op.sandbox, sizeof op.sandbox, "aaaaaaaa");
	snprintf(op.layer, sizeof op.layer, "%s", layer_name(n));
	snprintf(op.snapshot, sizeof op.snapshot, "snap%06d", n);
	OK(catalog_top(c, "aaaaaaaa", top, &t_e));
	OK(catalog_op_begin(c, &op, &t_e));
	CHECK(mkdirat(s.fd, t_path("layers", op.layer, ""), 0755) == 0);
	CHECK(mkdirat(s.fd, t_path("layers", op.layer, "/0"), 0755) == 0);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof path, "/0/f%d-%d", n, i);
		t_put(&s, t_path("layers", op.layer, path), "");
	}
	t_put(&s, t_path("layers", op.layer, "/0/same"), op.layer);
	OK(catalog_op_done(c, &op, OPERATION_SEALED, top, &t_e));
}

static void make_box(const char *id)
{
	struct sandbox_row row = { .template_ = "t", .recipe = { "", 1 } };

	(void)str_copy(row.id, sizeof row.id, str_of(id));
	OK(catalog_add_sandbox(c, &row, false, &t_e));
}

/*
 * Flattens a sandbox whose lowest layer has `files` files and whose other layers have one. Returns
 * the resulting stack.
 */
static size_t flatten(int files, char (**ret)[ID_SIZE])
{
	char top[ID_SIZE];
	size_t n = 0;
	int r;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	make_box("aaaaaaaa");
	for (int i = 0; i < LAYERS; i++)
		seal(i, i == 0 ? files : 1);
	do {
		OK(catalog_top(c, "aaaaaaaa", top, &t_e));
		r = flatten_once(c, &s, top, "aaaaaaaa", &t_e);
		CHECK(r >= 0);
	} while (r > 0);
	OK(catalog_top(c, "aaaaaaaa", top, &t_e));
	OK(catalog_stack(c, top, ret, &n, &t_e));
	return n;
}

static int *synced; /* counts syncs of complete layers before they have their name; shared memory */

/* Replaces the library function. */
int syncfs(int fd)
{
	char link[32], path[512] = "";

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (synced && readlink(link, path, sizeof path - 1) > 0)
		*synced += strstr(path, "/layers/new-") && faccessat(fd, "0/f0-0", F_OK, 0) == 0;
	return 0;
}

static void a_run_of_small_layers_becomes_one(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	auto_done(buf_done) struct buf same = BUF_INIT(64);
	size_t n;

	synced = mmap(NULL, sizeof *synced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(synced != MAP_FAILED);
	n = flatten(3, &ids);
	/* The merged layer replaces layers that may have been on disk for long. */
	CHECK(*synced == 1);

	CHECK(n == FLATTEN_SPARE + 1);
	for (int i = 0; i < FLATTEN_RUN; i++) {
		char file[32];

		snprintf(file, sizeof file, "/0/f%d-0", i);
		CHECK(t_there(&s, t_path("layers", ids[n - 1], file)));
	}
	/* All layers have this name: the topmost file wins. */
	OK(io_read_file(s.fd, t_path("layers", ids[n - 1], "/0/same"), &same));
	CHECK_STR(same.data, layer_name(FLATTEN_RUN - 1));
	catalog_close(c);
}

/* Otherwise each level copies the large layer again: seconds of work that save one layer. */
static void a_large_layer_below_small_ones_is_left_as_it_is(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = flatten(2000, &ids);

	CHECK(n == LAYERS);
	CHECK(strcmp(ids[n - 1], layer_name(0)) == 0);
	/* With one more layer, the small layers form their own run. */
	free(TAKE_PTR(ids));
	seal(LAYERS, 1);
	CHECK(flatten_once(c, &s, layer_name(LAYERS), "aaaaaaaa", &t_e) == 1);
	OK(catalog_stack(c, layer_name(LAYERS), &ids, &n, &t_e));
	CHECK(n == FLATTEN_SPARE + 2);
	CHECK(strcmp(ids[n - 1], layer_name(0)) == 0);
	CHECK(t_there(&s, t_path("layers", ids[n - 2], "/0/f1-0")));
	CHECK(!t_there(&s, t_path("layers", ids[n - 2], "/0/f0-0")));
	catalog_close(c);
}

/* Delete all snapshots; then only the sandbox's mounts hold layers. */
static void forget_snapshots(void)
{
	OK(db_do(c, &t_e, "DELETE FROM snapshots", ""));
	OK(layers_free(c, &s, NULL, NULL, &t_e));
}

static void mounted_layers_stay_until_the_next_switch(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;

	(void)flatten(3, &ids);
	forget_snapshots();
	for (int i = 0; i < FLATTEN_RUN; i++)
		CHECK(t_there(&s, t_path("layers", layer_name(i), "/0")));
	seal(LAYERS, 1);
	forget_snapshots();
	for (int i = 0; i < FLATTEN_RUN; i++)
		CHECK(!t_there(&s, t_path("layers", layer_name(i), "")));
	CHECK(t_there(&s, t_path("layers", layer_name(LAYERS - 1), "/0")));
	catalog_close(c);
}

static int count_layers(void)
{
	auto_done(dir_free) DIR *d = dir_open_at(s.fd, "layers");
	int n = 0;

	for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d))
		n += x->d_name[0] != '.' && strncmp(x->d_name, "new-", 4) != 0;
	return n;
}

/*
 * Ends the process once the merged layer has its name; exits with 0 if nothing had been put in
 * place.
 */
static void __attribute__((noreturn)) end_operation(const char *top)
{
	const struct timespec nap = { .tv_nsec = 20 * (long)NS_PER_MS };
	auto_free char(*ids)[ID_SIZE] = NULL;
	struct catalog *own;
	size_t n = 0;

	while (count_layers() == LAYERS)
		(void)nanosleep(&nap, NULL);
	(void)nanosleep(&nap, NULL);
	if (catalog_open(&s, &own, &t_e) < 0 || catalog_stack(own, top, &ids, &n, &t_e) < 0 ||
	    catalog_op_cancel(own, "aaaaaaaa", &t_e) < 0)
		_exit(2);
	_exit(n == LAYERS ? 0 : 1);
}

/* The warden has already been told which layers to mount. */
static void nothing_is_replaced_during_a_switch(void)
{
	struct operation_row op = { .kind = OPERATION_ROLLBACK, .sandbox = "aaaaaaaa" };
	char top[ID_SIZE];
	int status = -1;
	pid_t pid;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	make_box("aaaaaaaa");
	for (int i = 0; i < LAYERS; i++)
		seal(i, 1);
	OK(catalog_top(c, "aaaaaaaa", top, &t_e));
	(void)str_copy(op.layer, sizeof op.layer, str_of(top));
	OK(catalog_op_begin(c, &op, &t_e));
	pid = fork();
	if (pid == 0)
		end_operation(top);
	CHECK(flatten_once(c, &s, top, "aaaaaaaa", &t_e) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	catalog_close(c);
}

static int refuse(void *ctx)
{
	(void)ctx;
	return 1;
}

static int flatten_it(void)
{
	char top[ID_SIZE];

	OK(catalog_top(c, "aaaaaaaa", top, &t_e));
	return flatten_once(c, &s, top, "aaaaaaaa", &t_e);
}

/* Otherwise flatten would copy the same layers again and again while the disk is full. */
static void a_failed_commit_is_a_failure(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = flatten(3, &ids);

	for (int i = LAYERS; i < LAYERS + FLATTEN_RUN; i++)
		seal(i, 1);
	(void)sqlite3_commit_hook(c->db, refuse, NULL);
	CHECK(flatten_it() == -1);
	(void)sqlite3_commit_hook(c->db, NULL, NULL);
	CHECK(flatten_it() == 1);
	free(TAKE_PTR(ids));
	OK(catalog_stack(c, layer_name(LAYERS + FLATTEN_RUN - 1), &ids, &n, &t_e));
	CHECK(n == FLATTEN_SPARE + 2);
	catalog_close(c);
}

/* A stack whose layers are missing. */
static void a_stack_that_cannot_be_merged_does_not_stop_others(void)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	struct err e;
	size_t n = 0;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	make_box("aaaaaaaa");
	make_box("00000000");
	for (int i = 0; i < LAYERS; i++)
		seal(i, 1);
	OK(db_do(c, &t_e,
		 "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 15)"
		 " INSERT INTO layers(id, parent, created_ns) SELECT printf('gone%06d', i),"
		 " CASE i WHEN 0 THEN NULL ELSE printf('gone%06d', i - 1) END, 0 FROM n",
		 ""));
	OK(db_do(c, &t_e, "UPDATE sandboxes SET top = 'gone000015' WHERE id = '00000000'", ""));
	CHECK(flatten_all(c, &s, &e) == -1);
	OK(catalog_stack(c, layer_name(LAYERS - 1), &ids, &n, &t_e));
	CHECK(n == FLATTEN_SPARE + 1);
	catalog_close(c);
}

/*
 * The merge needs the template's names for whiteouts: without them, deleted files would come back.
 */
static void nothing_is_merged_while_the_template_is_missing(void)
{
	auto_done(buf_done) struct buf mount = BUF_INIT(256), recipe = BUF_INIT(256);
	struct sandbox_row row = { .id = "aaaaaaaa", .template_ = "t" };
	char lower[128];

	t_state(&s);
	snprintf(lower, sizeof lower, "%s/template", t_dir);
	CHECK(field_put_c(&mount, M_LOWER, lower) == 0);
	CHECK(field_put(&recipe, TAG_MOUNT, buf_str(&mount)) == 0);
	row.recipe = buf_str(&recipe);
	OK(catalog_open(&s, &c, &t_e));
	OK(catalog_add_sandbox(c, &row, false, &t_e));
	for (int i = 0; i < LAYERS; i++)
		seal(i, 1);
	CHECK(flatten_it() == -1);
	CHECK(t_e.sys == ENOENT);
	CHECK(mkdir(lower, 0700) == 0);
	CHECK(flatten_it() == 1);
	catalog_close(c);
}

int main(void)
{
	const struct t_case cases[] = {
		T(a_run_of_small_layers_becomes_one),
		T(a_large_layer_below_small_ones_is_left_as_it_is),
		T(mounted_layers_stay_until_the_next_switch),
		T(nothing_is_replaced_during_a_switch),
		T(a_failed_commit_is_a_failure),
		T(nothing_is_merged_while_the_template_is_missing),
		T(a_stack_that_cannot_be_merged_does_not_stop_others),
	};

	return t_run(cases, sizeof cases / sizeof cases[0]);
}
