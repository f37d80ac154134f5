/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/ready_key.h"
#include "ops/reconcile.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ops/layers_free.h"
#include "store/db.h"
#include "store/pools.h"
#include "store/snapshots.h"
#include "store/store_test.h"
#include "sys/ns/caps.h"
#include "wire/frame.h"
#include "wire/proto.h"

static struct state s;
static struct cay_config config;

static void put_mount(struct buf *b, const char *lower, enum mount_kind kind, bool of_host)
{
	auto_done(buf_done) struct buf m = BUF_INIT(4096);

	CHECK(field_put_u64(&m, M_KIND, kind) == 0 && field_put_c(&m, M_DEST, "/x") == 0 &&
	      field_put_c(&m, M_LOWER, lower) == 0);
	CHECK(!of_host || field_put_u64(&m, M_OWNER, 0) == 0);
	CHECK(field_put(b, TAG_MOUNT, buf_str(&m)) == 0);
}

static void put_plain(struct buf *b)
{
	CHECK(field_put_u64(b, TAG_TRACE, TRACE_FULL) == 0);
	CHECK(field_put_u64(b, TAG_PROFILE, PROFILE_DEV) == 0);
	put_mount(b, "/usr", MOUNT_OVERLAY, false);
}

static int key_of(const struct buf *b, const char *top, char key[READY_KEY])
{
	return ready_key(&s, "/nowhere/cay-warden", &config, buf_str(b), top, key);
}

static bool same(const struct buf *a, const struct buf *b)
{
	char one[READY_KEY], two[READY_KEY];

	CHECK(key_of(a, "", one) == 1 && key_of(b, "", two) == 1);
	CHECK(strlen(one) == READY_KEY - 1);
	return strcmp(one, two) == 0;
}

static bool same_key(const struct buf *b, const char *as)
{
	char key[READY_KEY];

	CHECK(key_of(b, "", key) == 1);
	return strcmp(key, as) == 0;
}

static void choices_of_the_owner_are_not_in_the_key(void)
{
	auto_done(buf_done) struct buf a = BUF_INIT(4096), b = BUF_INIT(4096);

	t_state(&s);
	put_plain(&a);
	CHECK(field_put_c(&b, TAG_ENV, "A=1") == 0 && field_put_c(&b, TAG_USER, "root") == 0);
	CHECK(field_put_c(&b, TAG_CWD, "/tmp") == 0 && field_put_c(&b, TAG_LABEL, "k=v") == 0);
	CHECK(field_put_u64(&b, TAG_TTL_MS, 5) == 0 && field_put_u64(&b, TAG_IDLE_MS, 5) == 0);
	CHECK(field_put_u64(&b, TAG_ON_TIMEOUT, 1) == 0 &&
	      field_put_u64(&b, TAG_TIMEOUT_MS, 5) == 0);
	put_plain(&b);
	CHECK(same(&a, &b));
}

static void of_a_policy_only_its_presence_is_in_the_key(void)
{
	auto_done(buf_done) struct buf none = BUF_INIT(4096), a = BUF_INIT(4096),
				       b = BUF_INIT(4096), made = BUF_INIT(4096);

	t_state(&s);
	put_plain(&none);
	put_plain(&a);
	put_plain(&b);
	CHECK(field_put_c(&a, TAG_NET_POLICY, "one") == 0);
	CHECK(field_put_c(&b, TAG_NET_POLICY, "another") == 0);
	CHECK(same(&a, &b) && !same(&a, &none));
	/* As the keeper has it. */
	CHECK(ready_split(buf_str(&a), false, &made) == 0);
	CHECK(same(&a, &made));
}

static void the_order_of_different_fields_does_not_matter(void)
{
	auto_done(buf_done) struct buf a = BUF_INIT(4096), b = BUF_INIT(4096);

	t_state(&s);
	put_plain(&a);
	put_mount(&b, "/usr", MOUNT_OVERLAY, false);
	CHECK(field_put_u64(&b, TAG_PROFILE, PROFILE_DEV) == 0);
	CHECK(field_put_u64(&b, TAG_TRACE, TRACE_FULL) == 0);
	CHECK(same(&a, &b));
}

static void everything_built_is_in_the_key(void)
{
	static const uint16_t tags[] = { TAG_MEMORY, TAG_CPU_MILLI, TAG_PIDS,
					 TAG_FILES,  TAG_DISK,	    TAG_BEST_EFFORT };
	auto_done(buf_done) struct buf a = BUF_INIT(4096), locked = BUF_INIT(4096),
				       more = BUF_INIT(4096);
	char one[READY_KEY], two[READY_KEY];

	t_state(&s);
	put_plain(&a);
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096), c = BUF_INIT(4096);

		put_plain(&b);
		CHECK(field_put_u64(&b, tags[i], 1) == 0);
		put_plain(&c);
		CHECK(field_put_u64(&c, tags[i], 2) == 0);
		CHECK(!same(&a, &b) && !same(&b, &c));
	}
	CHECK(field_put_u64(&locked, TAG_TRACE, TRACE_FULL) == 0);
	CHECK(field_put_u64(&locked, TAG_PROFILE, PROFILE_LOCKED) == 0);
	put_mount(&locked, "/usr", MOUNT_OVERLAY, false);
	put_plain(&more);
	put_mount(&more, "/opt", MOUNT_OVERLAY, true);
	CHECK(!same(&a, &locked) && !same(&a, &more));
	CHECK(key_of(&a, "", one) == 1 && key_of(&a, "aaaaaaaaaa", two) == 1);
	CHECK(strcmp(one, two) != 0);
}

static void unknown_fields_cannot_be_made_in_advance(void)
{
	static const uint16_t tags[] = { TAG_NAMESERVER, TAG_PROXY, 999 };
	char key[READY_KEY];

	t_state(&s);
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		put_plain(&b);
		CHECK(field_put_c(&b, tags[i], "x") == 0);
		CHECK(key_of(&b, "", key) == 0);
	}
}

static void mounts_of_every_kind_can_and_differ(void)
{
	static const struct {
		enum mount_kind kind;
		bool of_host;
	} kinds[] = { { MOUNT_OVERLAY, true }, { MOUNT_RO, true }, { MOUNT_RO, false } };
	char keys[ARRAY_LEN(kinds)][READY_KEY];

	t_state(&s);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		put_plain(&b);
		put_mount(&b, "/opt", kinds[i].kind, kinds[i].of_host);
		CHECK(key_of(&b, "", keys[i]) == 1);
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(keys[i], keys[j]) != 0);
	}
}

/* The list of mounts would write its name differently. */
static void a_read_only_mount_with_an_odd_name_cannot(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char key[READY_KEY];

	t_state(&s);
	put_plain(&b);
	put_mount(&b, "/opt/a b", MOUNT_RO, true);
	CHECK(key_of(&b, "", key) == 0);
}

static void malformed_recipes_are_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096), out = BUF_INIT(4096);
	char key[READY_KEY];

	t_state(&s);
	put_plain(&b);
	b.len--;
	CHECK(key_of(&b, "", key) < 0);
	CHECK(ready_split(buf_str(&b), false, &out) < 0);
}

static void another_directory_in_the_same_place_is_another_kind(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char one[READY_KEY], two[READY_KEY], path[96], aside[96];

	t_state(&s);
	(void)snprintf(path, sizeof path, "%s/d", t_dir);
	(void)snprintf(aside, sizeof aside, "%s/e", t_dir);
	CHECK(mkdir(path, 0700) == 0);
	put_mount(&b, path, MOUNT_OVERLAY, true);
	CHECK(key_of(&b, "", one) == 1 && rename(path, aside) == 0 && mkdir(path, 0700) == 0);
	CHECK(key_of(&b, "", two) == 1 && strcmp(one, two) != 0);
	CHECK(rmdir(path) == 0 && rename(aside, path) == 0);
	CHECK(key_of(&b, "", two) == 1 && strcmp(one, two) == 0);
}

static void changes_of_a_template_but_not_of_a_directory_are_in_the_key(void)
{
	auto_done(buf_done) struct buf of_template = BUF_INIT(4096), of_host = BUF_INIT(4096);
	char one[READY_KEY], two[READY_KEY], path[96], bin[104];
	const struct timespec other[2] = { { 1000, 0 }, { 1000, 0 } };

	t_state(&s);
	(void)snprintf(path, sizeof path, "%s/d", t_dir);
	(void)snprintf(bin, sizeof bin, "%s/bin", path);
	CHECK(mkdir(path, 0700) == 0 && mkdir(bin, 0700) == 0);
	put_mount(&of_template, path, MOUNT_OVERLAY, false);
	put_mount(&of_host, path, MOUNT_OVERLAY, true);
	CHECK(key_of(&of_template, "", one) == 1 && key_of(&of_host, "", two) == 1);
	CHECK(utimensat(AT_FDCWD, bin, other, 0) == 0);
	CHECK(utimensat(AT_FDCWD, path, other, 0) == 0);
	CHECK(same_key(&of_host, two) && !same_key(&of_template, one));
}

static void limits_and_priority_of_the_caller_are_not_in_the_key(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char before[READY_KEY], after[READY_KEY];
	struct rlimit l;

	t_state(&s);
	put_plain(&b);
	CHECK(key_of(&b, "", before) == 1 && key_of(&b, "", after) == 1);
	CHECK(strcmp(before, after) == 0);
	CHECK(getrlimit(RLIMIT_FSIZE, &l) == 0);
	l.rlim_cur = 12345; /* anybody may raise a soft limit again */
	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
	(void)umask(077);
	CHECK(same_key(&b, before));
	CHECK(io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "300") == 0);
	CHECK(same_key(&b, before));
	if (!(caps_now() & 1ull << CAP_SYS_NICE))
		t_skip("the rest needs a process that may raise its priority");
	CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
	CHECK(same_key(&b, before));
}

static void properties_that_a_user_cannot_undo_are_in_the_key(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char before[READY_KEY], after[READY_KEY];
	struct rlimit l = { 12345, 12345 };

	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	t_state(&s);
	put_plain(&b);
	CHECK(key_of(&b, "", before) == 1);
	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
	CHECK(key_of(&b, "", after) == 1 && strcmp(before, after) != 0);
	memcpy(before, after, sizeof before);
	if (getpriority(PRIO_PROCESS, 0) == 19)
		t_skip("this runs at the lowest priority already");
	CHECK(setpriority(PRIO_PROCESS, 0, 19) == 0);
	CHECK(key_of(&b, "", after) == 1 && strcmp(before, after) != 0);
}

static void settings_of_the_warden_are_in_the_key(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	char before[READY_KEY], after[READY_KEY];

	t_state(&s);
	put_plain(&b);
	CHECK(key_of(&b, "", before) == 1);
	config.keep_ended = "7";
	CHECK(key_of(&b, "", after) == 1 && strcmp(before, after) != 0);
}

static void a_recipe_is_parted_in_two(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096), late = BUF_INIT(4096),
				       built = BUF_INIT(4096);
	auto_done(buf_done) struct buf plain = BUF_INIT(4096);
	struct str rest;
	struct field f;

	put_plain(&b);
	put_plain(&plain);
	CHECK(field_put_c(&b, TAG_ENV, "A=1") == 0);
	CHECK(ready_split(buf_str(&b), true, &late) == 0 &&
	      ready_split(buf_str(&b), false, &built) == 0);
	CHECK(str_eq(buf_str(&built), buf_str(&plain)));
	rest = buf_str(&late);
	CHECK(field_next(&rest, &f) == 1 && f.tag == TAG_ENV && str_is(f.value, "A=1"));
	CHECK(field_next(&rest, &f) == 0);
}

static void kinds_and_those_in_them_are_listed(void)
{
	static const char key[] = "0123456789012345678901234567890123456789";
	auto_free char(*ids)[ID_SIZE] = NULL;
	auto_free char(*keys)[READY_KEY] = NULL;
	auto_close int fd = FD_NONE;
	size_t n = 9;

	t_state(&s);
	CHECK(!ready_exists(&s) && ready_open_key(&s, key) == -ENOENT &&
	      ready_claims(&s, key) == 0);
	fd = ready_make_key(&s, key);
	CHECK(fd >= 0 && ready_exists(&s) && ready_list(fd, &ids, &n) == 0 && n == 0);
	t_put(&s, t_path("ready", key, "/aaaaaaaaaa"), "");
	t_put(&s, t_path("ready", key, "/.claims"), "...");
	t_put(&s, t_path("ready", key, "/No-Id"), "");
	free(ids);
	CHECK(ready_list(fd, &ids, &n) == 0 && n == 1);
	CHECK_STR(ids[0], "aaaaaaaaaa");
	CHECK(ready_claims(&s, key) == 3);
	CHECK(ready_keys(&s, &keys, &n) == 0 && n == 1);
	CHECK_STR(keys[0], key);
	ready_drop_key(&s, key); /* not while it lists a sandbox */
	CHECK(t_there(&s, t_path("ready", key, "")));
	CHECK(unlinkat(fd, "aaaaaaaaaa", 0) == 0 && unlinkat(fd, "No-Id", 0) == 0);
	ready_drop_key(&s, key);
	ready_drop(&s);
	CHECK(!ready_exists(&s));
}

static void there_is_at_most_one_keeper(void)
{
	auto_close int first = FD_NONE, second = FD_NONE;

	t_state(&s);
	CHECK(ready_keeper(&s) == 0);
	first = ready_lock(&s);
	CHECK(first >= 0 && ready_keeper(&s) == getpid());
	CHECK(ready_lock(&s) == -EWOULDBLOCK);
	/* A lock whose file is gone does not count. */
	ready_drop(&s);
	CHECK(!ready_exists(&s) && ready_keeper(&s) == 0);
	second = ready_lock(&s);
	CHECK(second >= 0 && ready_keeper(&s) == getpid());
	fd_close(&second);
	CHECK(ready_keeper(&s) == 0);
}

static int count_pool(void *ctx, const struct pool_row *p)
{
	char *text = ctx;

	(void)snprintf(text + strlen(text), 200 - strlen(text), "%s|%s|%u|%llu|%s|%zu;",
		       p->template_, p->options, p->wanted, (unsigned long long)p->claimed,
		       p->problem, p->recipe.len);
	return 0;
}

static void pools_are_rows(void)
{
	struct pool_row p = POOL_ROW_INIT;
	struct catalog *c;
	char text[200] = "";
	int n;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	(void)snprintf(p.template_, sizeof p.template_, "host");
	put_plain(&p.recipe);
	p.wanted = 3;
	OK(catalog_put_pool(c, &p, &t_e));
	p.wanted = 5;
	OK(catalog_put_pool(c, &p, &t_e));
	p.claimed = 7;
	(void)snprintf(p.problem, sizeof p.problem, "full");
	OK(catalog_note_pool(c, &p, &t_e));
	(void)snprintf(p.options, sizeof p.options, "--pids 9");
	p.recipe.len = 0;
	OK(catalog_put_pool(c, &p, &t_e));
	OK(catalog_each_pool(c, count_pool, text, &t_e));
	SAYS(text, "host||5|7|full|");
	SAYS(text, ";host|--pids 9|5|0||0;");
	OK(catalog_del_pools(c, "host", "--pids 8", &n, &t_e));
	CHECK(n == 0);
	OK(catalog_del_pools(c, "host", NULL, &n, &t_e));
	CHECK(n == 2);
	text[0] = '\0';
	OK(catalog_each_pool(c, count_pool, text, &t_e));
	CHECK_STR(text, "");
	pool_row_done(&p);
	catalog_close(c);
}

static int count_layers(struct catalog *c)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	OK(db_query(c, &q, &t_e, "SELECT count(*) FROM layers", ""));
	CHECK(db_step(c, q, &t_e) == 1);
	return sqlite3_column_int(q, 0);
}

static void layers_are_held_without_a_row(void)
{
	char layers[2][ID_SIZE] = { "bbbbbbbbbb", "cccccccccc" };
	struct catalog *c;
	int lock;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	FAILS(catalog_hold_layers(c, "aaaaaaaaaa", layers, 2, &t_e), ERR_CONFLICT);
	OK(db_do(c, &t_e,
		 "INSERT INTO layers(id, parent, created_ns) VALUES('cccccccccc', NULL, 1)", ""));
	OK(db_do(c, &t_e,
		 "INSERT INTO layers(id, parent, created_ns) VALUES('bbbbbbbbbb', 'cccccccccc', 1)",
		 ""));
	OK(catalog_hold_layers(c, "aaaaaaaaaa", layers, 2, &t_e));
	OK(layers_free(c, &s, NULL, NULL, &t_e));
	CHECK(count_layers(c) == 2);
	/* Not while it lives, and not before a process checks. */
	OK(state_lock(&s, "aaaaaaaaaa", &lock, &t_e));
	OK(reconcile_all(c, &s, 0, NULL, &t_e));
	OK(layers_free(c, &s, NULL, NULL, &t_e));
	CHECK(count_layers(c) == 2);
	(void)close(lock);
	OK(reconcile_all(c, &s, 0, NULL, &t_e));
	OK(layers_free(c, &s, NULL, NULL, &t_e));
	CHECK(count_layers(c) == 0);
	catalog_close(c);
}

static void a_batch_is_written_as_one(void)
{
	struct catalog *c;

	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
	OK(catalog_batch_begin(c, &t_e));
	OK(t_add(c, "aaaaaaaaaa", "x", false));
	FAILS(t_add(c, "bbbbbbbbbb", "x", false), ERR_CONFLICT);
	CHECK(catalog_batch_end(c, -1, &t_e) == -1);
	CHECK(!t_has_row(c, "aaaaaaaaaa"));
	OK(catalog_batch_begin(c, &t_e));
	OK(t_add(c, "aaaaaaaaaa", "x", false));
	OK(t_add(c, "bbbbbbbbbb", "y", true));
	OK(catalog_batch_end(c, 0, &t_e));
	CHECK(t_has_row(c, "aaaaaaaaaa") && t_has_row(c, "bbbbbbbbbb"));
	catalog_close(c);
}

T_MAIN(T(choices_of_the_owner_are_not_in_the_key), T(the_order_of_different_fields_does_not_matter),
       T(of_a_policy_only_its_presence_is_in_the_key), T(everything_built_is_in_the_key),
       T(unknown_fields_cannot_be_made_in_advance), T(mounts_of_every_kind_can_and_differ),
       T(a_read_only_mount_with_an_odd_name_cannot), T(malformed_recipes_are_refused),
       T(another_directory_in_the_same_place_is_another_kind),
       T(changes_of_a_template_but_not_of_a_directory_are_in_the_key),
       T(limits_and_priority_of_the_caller_are_not_in_the_key),
       T(properties_that_a_user_cannot_undo_are_in_the_key),
       T(settings_of_the_warden_are_in_the_key), T(a_recipe_is_parted_in_two),
       T(kinds_and_those_in_them_are_listed), T(there_is_at_most_one_keeper), T(pools_are_rows),
       T(layers_are_held_without_a_row), T(a_batch_is_written_as_one))
