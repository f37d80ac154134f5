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

static struct key_row add_like(const char *id, const char *name, const char *shares,
			       const struct key_limits *limits)
{
	struct key_row row = { 0 };

	if (limits)
		row.limits = *limits;
	(void)snprintf(row.id, sizeof row.id, "%s", id);
	(void)snprintf(row.name, sizeof row.name, "%s", name);
	(void)snprintf(row.shown, sizeof row.shown, "e2b_ab");
	sha256(id, strlen(id), row.digest);
	OK(catalog_add_key(cat, &row, shares, &t_e));
	return row;
}

static struct key_row add(const char *id, const char *name)
{
	return add_like(id, name, NULL, NULL);
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
	FAILS(catalog_add_key(cat, &row, NULL, &t_e), ERR_CONFLICT);
	CHECK_STR(t_e.code, "key.exists");
	catalog_close(cat);
}

static void what_was_said_of_a_key_can_be_changed(void)
{
	const struct key_limits first = { .of = { [KEY_SANDBOXES] = 3, [KEY_CALLS] = 4 } };
	const struct key_limits then = { .of = { [KEY_CALLS] = 5 }, .scope = SCOPE_READ };
	struct key_limits all;
	struct key_row got;

	set_up();
	add_like("kaaaaaaaaaaa", "one", NULL, &first);
	OK(catalog_set_key(cat, "one", &then, &(uint64_t){ 77 }, &got, &t_e));
	CHECK(got.expires_ns == 77 && got.limits.scope == SCOPE_READ);
	OK(catalog_set_key(cat, "kaaaaaaaaaaa", &(struct key_limits){ 0 }, NULL, &got, &t_e));
	CHECK(got.expires_ns == 77 && got.limits.of[KEY_SANDBOXES] == 3 &&
	      got.limits.of[KEY_CALLS] == 5);
	FAILS(catalog_set_key(cat, "none", &then, NULL, &got, &t_e), ERR_NOT_FOUND);
	/* The key, then the server, then what is built in. */
	OK(catalog_set_server_limits(
		cat, &(struct key_limits){ .of = { [KEY_CALLS] = 6, [KEY_RATE] = 7 } }, &t_e));
	OK(catalog_owner_limits(cat, "kaaaaaaaaaaa", &all, &t_e));
	CHECK(all.of[KEY_CALLS] == 5 && all.of[KEY_RATE] == 7 && all.of[KEY_BOX_PIDS] == 2048);
	catalog_close(cat);
}

static void a_key_that_shares_another_is_revoked_with_it(void)
{
	struct key_row got, shares;
	char names[64] = "";

	set_up();
	add("kaaaaaaaaaaa", "one");
	shares = add_like("kbbbbbbbbbbb", "two", "one", NULL);
	CHECK_STR(shares.owner, "kaaaaaaaaaaa");
	CHECK_STR(add_like("kccccccccccc", "three", "two", NULL).owner, "kaaaaaaaaaaa");
	add("kddddddddddd", "four");
	OK(catalog_del_key(cat, "one", &got, &t_e));
	OK(catalog_each_key(cat, note, names, &t_e));
	CHECK_STR(names, "four ");
	shares = (struct key_row){ .id = "keeeeeeeeeee", .name = "five" };
	FAILS(catalog_add_key(cat, &shares, "one", &t_e), ERR_NOT_FOUND);
	catalog_close(cat);
}

static int add_box(const char *id, const char *owner, const char *spec)
{
	struct sandbox_row row = { .uid_slot = -1, .running = true };
	int r;

	(void)snprintf(row.id, sizeof row.id, "%s", id);
	(void)snprintf(row.owner, sizeof row.owner, "%s", owner);
	(void)snprintf(row.template_, sizeof row.template_, "host");
	row.spec = strdup(spec);
	r = catalog_add_sandbox(cat, &row, false, &t_e);
	sandbox_row_done(&row);
	return r;
}

#define SMALL "{\"limits\":{\"memory\":100,\"cpu_milli\":10,\"pids\":5,\"disk\":5}}"

static void quotas_count_the_living(void)
{
	const struct key_limits limits = { .of = { [KEY_SANDBOXES] = 2, [KEY_MEMORY] = 1000 } };
	int locks[2];

	set_up();
	add_like("kaaaaaaaaaaa", "one", NULL, &limits);
	OK(state_lock(&s, "saaaaaaaaaaa", &locks[0], &t_e));
	OK(state_lock(&s, "sbbbbbbbbbbb", &locks[1], &t_e));
	OK(add_box("saaaaaaaaaaa", "kaaaaaaaaaaa", SMALL));
	OK(add_box("sbbbbbbbbbbb", "kaaaaaaaaaaa", SMALL));
	FAILS(add_box("sccccccccccc", "kaaaaaaaaaaa", SMALL), ERR_LIMIT);
	CHECK_STR(t_e.code, "quota.sandboxes");
	OK(add_box("sddddddddddd", "kother", SMALL)); /* its key was revoked */
	OK(add_box("seeeeeeeeeee", "", "{}"));	      /* the host's user */
	state_unlock(&s, "sbbbbbbbbbbb", locks[1]);   /* it has ended by itself */
	FAILS(add_box("sccccccccccc", "kaaaaaaaaaaa", "{}"), ERR_NOT_ALLOWED);
	OK(add_box("sccccccccccc", "kaaaaaaaaaaa", SMALL));
	OK(add_box("sfffffffffff", "kaaaaaaaaaaa", SMALL)); /* sccccccccccc has no lock */
	state_unlock(&s, "saaaaaaaaaaa", locks[0]);
	catalog_close(cat);
}

static void memory_is_summed_up(void)
{
	const struct key_limits limits = { .of = { [KEY_MEMORY] = 250 } };
	struct key_use use;
	int locks[2];

	set_up();
	add_like("kaaaaaaaaaaa", "one", NULL, &limits);
	OK(state_lock(&s, "saaaaaaaaaaa", &locks[0], &t_e));
	OK(state_lock(&s, "sbbbbbbbbbbb", &locks[1], &t_e));
	OK(add_box("saaaaaaaaaaa", "kaaaaaaaaaaa", SMALL));
	OK(add_box("sbbbbbbbbbbb", "kaaaaaaaaaaa", SMALL));
	OK(catalog_owner_use(cat, "kaaaaaaaaaaa", &use, &t_e));
	CHECK(use.sandboxes == 2 && use.memory == 200 && use.cpu_milli == 20);
	FAILS(add_box("sccccccccccc", "kaaaaaaaaaaa", SMALL), ERR_LIMIT);
	CHECK_STR(t_e.code, "quota.memory");
	state_unlock(&s, "saaaaaaaaaaa", locks[0]);
	state_unlock(&s, "sbbbbbbbbbbb", locks[1]);
	catalog_close(cat);
}

T_MAIN(T(keys_are_listed_until_they_are_revoked), T(a_name_is_given_once),
       T(what_was_said_of_a_key_can_be_changed), T(a_key_that_shares_another_is_revoked_with_it),
       T(quotas_count_the_living), T(memory_is_summed_up))
