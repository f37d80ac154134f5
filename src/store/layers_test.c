/* SPDX-License-Identifier: Apache-2.0 */
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

static void what_nobody_knows_is_removed(void)
{
	uint64_t bytes;
	int n;

	begin();
	make("layers/aaaaaaaaaa");
	make("layers/new-bbbbbbbbbb");
	make("layers/Else");
	t_put(&s, "layers/aaaaaaaaaa/f", "text");
	OK(catalog_free_layers(c, &s, &n, &bytes, &t_e));
	CHECK(n == 3 && bytes >= 512);
	CHECK(!t_there(&s, "layers/aaaaaaaaaa") && !t_there(&s, "layers/new-bbbbbbbbbb"));
	catalog_close(c);
}

/* A warden may be copying into it at this moment. */
static void a_layer_that_is_being_made_stays(void)
{
	struct op_row op = { .kind = OP_SNAPSHOT,
			     .snapshot_kind = SNAPSHOT_USER,
			     .sandbox = "aaaaaaaa",
			     .layer = "bbbbbbbbbb",
			     .snapshot = "cccccccccc" };
	int n;

	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	OK(catalog_op_begin(c, &op, &t_e));
	make("layers/new-bbbbbbbbbb");
	OK(catalog_free_layers(c, &s, &n, NULL, &t_e));
	CHECK(n == 0 && t_there(&s, "layers/new-bbbbbbbbbb"));
	OK(catalog_op_cancel(c, "aaaaaaaa", &t_e));
	OK(catalog_free_layers(c, &s, &n, NULL, &t_e));
	CHECK(n == 1 && !t_there(&s, "layers/new-bbbbbbbbbb"));
	catalog_close(c);
}

int main(void)
{
	const struct t_case cases[] = {
		T(what_nobody_knows_is_removed),
		T(a_layer_that_is_being_made_stays),
	};

	return t_run(cases, sizeof cases / sizeof cases[0]);
}
