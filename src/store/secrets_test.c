/* SPDX-License-Identifier: Apache-2.0 */
#include "store/secrets.h"

#include "store/store_test.h"

static struct state s;
static struct catalog *cat;

static void set_up(void)
{
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
}

static int add(const char *owner, const char *id, const char *name)
{
	struct secret_row row = { .metadata = "{}" };

	(void)snprintf(row.id, sizeof row.id, "%s", id);
	(void)snprintf(row.name, sizeof row.name, "%s", name);
	return catalog_add_secret(cat, owner, &row, "value", &t_e);
}

static int note(void *ctx, const struct secret_row *row)
{
	char *out = ctx;

	(void)snprintf(out + strlen(out), 64 - strlen(out), "%s:%d:%s ", row->name,
		       (int)row->version, row->metadata);
	return 0;
}

static const char *listed(const char *owner, const char *ref)
{
	static char out[64];

	out[0] = '\0';
	OK(catalog_each_secret(cat, owner, ref, 0, note, out, &t_e));
	return out;
}

static void secrets_are_seen_by_their_owner_only(void)
{
	set_up();
	OK(add("k1", "s1", "a"));
	OK(add("k2", "s2", "a"));
	OK(add("", "s3", "b"));
	CHECK(strcmp(listed("k1", NULL), "a:1:{} ") == 0);
	CHECK(strcmp(listed("", NULL), "b:1:{} ") == 0);
	CHECK(strcmp(listed("k1", "s2"), "") == 0 && strcmp(listed("k2", "s2"), "a:1:{} ") == 0);
	CHECK(catalog_del_secret(cat, "k1", "s2", &t_e) < 0 && t_e.kind == ERR_NOT_FOUND);
	OK(catalog_del_secret(cat, "k2", "a", &t_e));
	CHECK(strcmp(listed("k2", NULL), "") == 0);
	catalog_close(cat);
}

static void a_new_value_is_a_new_version(void)
{
	set_up();
	OK(add("k", "s1", "a"));
	CHECK(add("k", "s2", "a") < 0 && t_e.kind == ERR_CONFLICT);
	OK(catalog_set_secret(cat, "k", "a", "other", NULL, &t_e));
	CHECK(strcmp(listed("k", "a"), "a:2:{} ") == 0);
	OK(catalog_set_secret(cat, "k", "s1", "other", "{\"x\":\"y\"}", &t_e));
	CHECK(strcmp(listed("k", "a"), "a:3:{\"x\":\"y\"} ") == 0);
	CHECK(catalog_set_secret(cat, "k", "b", "x", NULL, &t_e) < 0 && t_e.kind == ERR_NOT_FOUND);
	catalog_close(cat);
}

T_MAIN(T(secrets_are_seen_by_their_owner_only), T(a_new_value_is_a_new_version))
