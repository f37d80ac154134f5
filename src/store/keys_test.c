/* SPDX-License-Identifier: Apache-2.0 */
#include "store/keys.h"

#include "store/store_test.h"

static struct state s;
static struct catalog *cat;

static void set_up(void)
{
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
}

static struct key_row add(const char *id, const char *name)
{
	struct key_row row = { 0 };

	(void)snprintf(row.id, sizeof row.id, "%s", id);
	(void)snprintf(row.name, sizeof row.name, "%s", name);
	(void)snprintf(row.shown, sizeof row.shown, "e2b_ab");
	sha256(id, strlen(id), row.digest);
	OK(catalog_add_key(cat, &row, &t_e));
	return row;
}

static int note(void *ctx, const struct key_row *row)
{
	char *out = ctx;

	(void)snprintf(out + strlen(out), 64 - strlen(out), "%s ", row->name);
	return 0;
}

static void keys_are_listed_until_they_are_revoked(void)
{
	struct key_row got, first;
	char names[64] = "";

	set_up();
	first = add("kaaaaaaaaaaa", "one");
	add("kbbbbbbbbbbb", "two");
	OK(catalog_each_key(cat, note, names, &t_e));
	CHECK_STR(names, "one two ");
	OK(catalog_del_key(cat, "one", &got, &t_e));
	CHECK_STR(got.id, "kaaaaaaaaaaa");
	CHECK(memcmp(got.digest, first.digest, sizeof got.digest) == 0);
	OK(catalog_del_key(cat, "kbbbbbbbbbbb", &got, &t_e));
	FAILS(catalog_del_key(cat, "one", &got, &t_e), ERR_NOT_FOUND);
	catalog_close(cat);
}

static void a_name_is_given_once(void)
{
	struct key_row row = { .id = "kccccccccccc", .name = "one" };

	set_up();
	add("kaaaaaaaaaaa", "one");
	FAILS(catalog_add_key(cat, &row, &t_e), ERR_CONFLICT);
	CHECK_STR(t_e.code, "key.exists");
	catalog_close(cat);
}

T_MAIN(T(keys_are_listed_until_they_are_revoked), T(a_name_is_given_once))
