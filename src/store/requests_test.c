/* SPDX-License-Identifier: Apache-2.0 */
#include "store/requests.h"

#include "store/store_test.h"

static struct state s;
static struct catalog *cat;

static void set_up(void)
{
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
}

static int add(const char *id, const char *owner, const struct request_key *k)
{
	struct sandbox_row row = { .template_ = "host", .uid_slot = -1, .request = k };

	(void)snprintf(row.id, sizeof row.id, "%s", id);
	(void)snprintf(row.owner, sizeof row.owner, "%s", owner);
	return catalog_add_sandbox(cat, &row, false, &t_e);
}

static int find(const char *owner, const char *key, char (*ids)[ID_SIZE], uint8_t *hash)
{
	return catalog_find_request(cat, owner, key, ids, 2, hash, &t_e);
}

static void a_request_is_found_with_its_sandboxes(void)
{
	struct request_key first = { .key = "k", .hash = { 7 } },
			   second = { .key = "k", .n = 1, .hash = { 7 } };
	uint8_t hash[SHA256_SIZE];
	char ids[2][ID_SIZE];

	set_up();
	CHECK(find("", "k", ids, hash) == 0);
	OK(add("baaaaaaaaaaa", "", &first));
	OK(add("aaaaaaaaaaaa", "", &second));
	CHECK(find("", "k", ids, hash) == 2);
	CHECK_STR(ids[0], "baaaaaaaaaaa");
	CHECK_STR(ids[1], "aaaaaaaaaaaa");
	CHECK(hash[0] == 7);
	catalog_close(cat);
}

static void a_key_makes_one_sandbox(void)
{
	struct request_key k = { .key = "k" };
	struct sandbox_row row;

	set_up();
	OK(add("aaaaaaaaaaaa", "", &k));
	FAILS(add("bbbbbbbbbbbb", "", &k), ERR_CONFLICT);
	CHECK_STR(t_e.code, "idempotency.taken");
	FAILS(catalog_find(cat, "bbbbbbbbbbbb", &row, &t_e), ERR_NOT_FOUND);
	catalog_close(cat);
}

static void keys_of_other_owners_are_others(void)
{
	struct request_key k = { .key = "k" };
	uint8_t hash[SHA256_SIZE];
	char ids[2][ID_SIZE];

	set_up();
	OK(add("aaaaaaaaaaaa", "", &k));
	OK(add("bbbbbbbbbbbb", "kaaaaaaaaaaa", &k));
	CHECK(find("kaaaaaaaaaaa", "k", ids, hash) == 1);
	CHECK_STR(ids[0], "bbbbbbbbbbbb");
	catalog_close(cat);
}

static void a_key_ends_with_its_sandbox(void)
{
	struct request_key k = { .key = "k" };
	uint8_t hash[SHA256_SIZE];
	char ids[2][ID_SIZE];

	set_up();
	OK(add("aaaaaaaaaaaa", "", &k));
	OK(catalog_del_sandbox(cat, "aaaaaaaaaaaa", &t_e));
	CHECK(find("", "k", ids, hash) == 0);
	OK(add("bbbbbbbbbbbb", "", &k));
	catalog_close(cat);
}

T_MAIN(T(a_request_is_found_with_its_sandboxes), T(a_key_makes_one_sandbox),
       T(keys_of_other_owners_are_others), T(a_key_ends_with_its_sandbox))
