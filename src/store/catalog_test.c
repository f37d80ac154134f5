/* SPDX-License-Identifier: Apache-2.0 */
#include "store/catalog.h"

#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "store/snapshots.h"
#include "store/store_test.h"

enum { NOBODY = 65534, WRITERS = 8, ROUNDS = 100 };

static struct state s;
static struct catalog *c;

static void begin(void)
{
	t_state(&s);
	OK(catalog_open(&s, &c, &t_e));
}

static void reopen(void)
{
	catalog_close(c);
	OK(catalog_open(&s, &c, &t_e));
}

static void a_row_round_trips(void)
{
	struct sandbox_row in = t_row("aaaaaaaa", "box", false), out = { 0 };
	uint64_t before = clock_real_ns();

	begin();
	in.spec = strdup("{\"net\":\"none\"}");
	OK(catalog_add_sandbox(c, &in, true, &t_e));
	CHECK(in.uid_slot == 0 && in.created_ns >= before);
	CHECK_STR(in.state, "creating");
	reopen();
	OK(catalog_find(c, "aaaaaaaa", &out, &t_e));
	CHECK_STR(out.id, "aaaaaaaa");
	CHECK_STR(out.name, "box");
	CHECK_STR(out.template_, "base");
	CHECK_STR(out.state, "creating");
	CHECK_STR(out.spec, in.spec);
	CHECK(!out.ephemeral && out.uid_slot == 0 && out.created_ns == in.created_ns);
	sandbox_row_done(&in);
	sandbox_row_done(&out);
	in = t_row("bbbbbbbb", "", true);
	in.created_ns = 7;
	OK(catalog_add_sandbox(c, &in, false, &t_e));
	OK(catalog_find(c, "bbbbbbbb", &out, &t_e));
	CHECK(out.ephemeral && out.uid_slot == -1 && out.created_ns == 7 && !out.spec);
	CHECK_STR(out.name, "");
	catalog_close(c);
}

static void states_change_and_only_to_known_ones(void)
{
	struct sandbox_row out = { 0 };

	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	OK(catalog_set_state(c, "aaaaaaaa", "running", &t_e));
	OK(catalog_find(c, "aaaaaaaa", &out, &t_e));
	CHECK_STR(out.state, "running");
	FAILS(catalog_set_state(c, "aaaaaaaa", "asleep", &t_e), ERR_INVALID);
	FAILS(catalog_set_state(c, "bbbbbbbb", "lost", &t_e), ERR_NOT_FOUND);
	catalog_close(c);
}

static void names_are_unique_while_they_are_held(void)
{
	begin();
	OK(t_add(c, "aaaaaaaa", "box", true));
	FAILS(t_add(c, "bbbbbbbb", "box", true), ERR_CONFLICT);
	SAYS(t_e.msg, "'box' is taken by sandbox 'aaaaaaaa'");
	FAILS(t_add(c, "aaaaaaaa", "other", true), ERR_CONFLICT);
	SAYS(t_e.msg, "'aaaaaaaa' exists");
	OK(t_add(c, "cccccccc", "", true));
	OK(t_add(c, "dddddddd", "", true));
	OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
	OK(t_add(c, "bbbbbbbb", "box", true));
	OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
	FAILS(t_add(c, "short", "", true), ERR_INVALID);
	FAILS(t_add(c, "eeeeeeee", "-x", true), ERR_INVALID);
	catalog_close(c);
}

static int add_slot(const char *id)
{
	struct sandbox_row row = t_row(id, "", true);

	OK(catalog_add_sandbox(c, &row, true, &t_e));
	return row.uid_slot;
}

static void the_lowest_free_slot_is_given(void)
{
	begin();
	CHECK(add_slot("aaaaaaaa") == 0);
	CHECK(add_slot("bbbbbbbb") == 1);
	OK(t_add(c, "noslot00", "", true));
	CHECK(add_slot("cccccccc") == 2);
	OK(catalog_del_sandbox(c, "bbbbbbbb", &t_e));
	CHECK(add_slot("dddddddd") == 1);
	OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
	OK(catalog_del_sandbox(c, "cccccccc", &t_e));
	CHECK(add_slot("eeeeeeee") == 0);
	CHECK(add_slot("ffffffff") == 2);
	catalog_close(c);
}

static void raw(const char *sql)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof path, "%s/s/catalog.db", t_dir);
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_close(db) == SQLITE_OK);
}

static int64_t raw_number(const char *sql)
{
	char path[128];
	sqlite3_stmt *q;
	sqlite3 *db;
	int64_t n;

	snprintf(path, sizeof path, "%s/s/catalog.db", t_dir);
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK);
	CHECK(sqlite3_step(q) == SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	CHECK(sqlite3_finalize(q) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK);
	return n;
}

static void a_given_slot_is_taken_unless_another_has_it(void)
{
	struct sandbox_row one = t_row("aaaaaaaa", "", true), two = t_row("bbbbbbbb", "", true);

	begin();
	one.uid_slot = two.uid_slot = 77;
	OK(catalog_add_sandbox(c, &one, true, &t_e));
	CHECK(one.uid_slot == 77);
	FAILS(catalog_add_sandbox(c, &two, true, &t_e), ERR_CONFLICT);
	CHECK(t_e.sys == EADDRINUSE && two.uid_slot == 77);
	SAYS(t_e.msg, "uid range 77 belongs to sandbox 'aaaaaaaa'");
	CHECK(!t_has_row(c, "bbbbbbbb"));
	two.uid_slot = 78;
	OK(catalog_add_sandbox(c, &two, true, &t_e));
	OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
	one.uid_slot = 78;
	FAILS(catalog_add_sandbox(c, &one, true, &t_e), ERR_CONFLICT);
	one.uid_slot = 77;
	OK(catalog_add_sandbox(c, &one, true, &t_e));
	catalog_close(c);
}

static void slots_end_at_their_limit(void)
{
	struct sandbox_row row = t_row("aaaaaaaa", "", true);

	begin();
	catalog_close(c);
	raw("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4094)"
	    " INSERT INTO sandboxes(id, template, state, ephemeral, created_ns, uid_slot)"
	    " SELECT format('box%08d', i), '', 'running', 1, 0, i FROM n");
	OK(catalog_open(&s, &c, &t_e));
	OK(catalog_add_sandbox(c, &row, true, &t_e));
	CHECK(row.uid_slot == UID_SLOTS - 1);
	CHECK(UID_SLOT_BASE + (unsigned)row.uid_slot * UID_SLOT_SIZE + 65535u <= 0x7fffffffu);
	row = t_row("bbbbbbbb", "", true);
	FAILS(catalog_add_sandbox(c, &row, true, &t_e), ERR_LIMIT);
	SAYS(t_e.msg, "4096");
	CHECK(!t_has_row(c, "bbbbbbbb"));
	OK(catalog_del_sandbox(c, "box00001234", &t_e));
	OK(catalog_add_sandbox(c, &row, true, &t_e));
	CHECK(row.uid_slot == 1234);
	catalog_close(c);
}

static void found(const char *ref, const char *id)
{
	struct sandbox_row row = { 0 };

	OK(catalog_find(c, ref, &row, &t_e));
	CHECK_STR(row.id, id);
}

static void find_tries_id_then_name_then_prefix(void)
{
	begin();
	OK(t_add(c, "k3aaaaaa", "web", true));
	OK(t_add(c, "k3bbbbbb", "k3aaaaaa", true)); /* a name like another's id */
	OK(t_add(c, "m0000000", "k3", true));	    /* a name like a prefix */
	found("k3aaaaaa", "k3aaaaaa");
	found("k3bbbbbb", "k3bbbbbb");
	found("web", "k3aaaaaa");
	found("k3", "m0000000");
	found("k3b", "k3bbbbbb");
	found("m", "m0000000");
	catalog_close(c);
}

static void an_ambiguous_prefix_lists_candidates(void)
{
	struct sandbox_row row;

	begin();
	OK(t_add(c, "k3aaaaaa", "", true));
	OK(t_add(c, "k3bbbbbb", "", true));
	FAILS(catalog_find(c, "k3", &row, &t_e), ERR_INVALID);
	CHECK_STR(t_e.msg, "'k3' is ambiguous");
	CHECK_STR(t_e.hint, "it can be k3aaaaaa, k3bbbbbb");
	OK(t_add(c, "k3cccccc", "", true));
	OK(t_add(c, "k3dddddd", "", true));
	OK(t_add(c, "k3eeeeee", "", true));
	FAILS(catalog_find(c, "k", &row, &t_e), ERR_INVALID);
	CHECK_STR(t_e.hint, "it can be k3aaaaaa, k3bbbbbb, k3cccccc, k3dddddd, ...");
	catalog_close(c);
}

static void a_missing_sandbox_says_what_was_meant(void)
{
	struct sandbox_row row;

	begin();
	FAILS(catalog_find(c, "x", &row, &t_e), ERR_NOT_FOUND);
	CHECK_STR(t_e.msg, "no sandbox 'x'");
	CHECK_STR(t_e.code, "sandbox.not_found");
	OK(t_add(c, "k3aaaaaa", "frontend", true));
	OK(t_add(c, "m3aaaaaa", "ab", true));
	FAILS(catalog_find(c, "frontned", &row, &t_e), ERR_NOT_FOUND);
	CHECK_STR(t_e.code, "sandbox.misspelt");
	CHECK_STR(t_e.about, "frontend");
	FAILS(catalog_find(c, "k3aaaaab", &row, &t_e), ERR_NOT_FOUND);
	CHECK_STR(t_e.about, "k3aaaaaa");
	FAILS(catalog_find(c, "fronteXXX", &row, &t_e), ERR_NOT_FOUND);
	CHECK(strcmp(t_e.about, "frontend") != 0);
	FAILS(catalog_find(c, "xy", &row, &t_e), ERR_NOT_FOUND);
	CHECK(strcmp(t_e.about, "ab") != 0);
	FAILS(catalog_find(c, "../x", &row, &t_e), ERR_INVALID);
	CHECK_STR(t_e.msg, "'../x' is not a sandbox id or name");
	FAILS(catalog_find(c, "", &row, &t_e), ERR_INVALID);
	FAILS(catalog_find(c, "k%", &row, &t_e), ERR_INVALID);
	catalog_close(c);
}

static int gather(void *ctx, const struct sandbox_row *row)
{
	memcpy((char *)ctx + strlen(ctx), row->name, strlen(row->name) + 1);
	/* The callback may use the catalog. */
	OK(catalog_set_state(c, row->id, "running", &t_e));
	if (strcmp(row->name, "b") == 0)
		OK(catalog_del_sandbox(c, "cccccccc", &t_e));
	return strcmp(row->name, "d") == 0;
}

static void rows_are_oldest_first_and_fn_can_stop(void)
{
	static const char *const names[] = { "d", "c", "b", "a", "e" };
	char seen[16] = "";

	begin();
	for (int i = 0; i < 5; i++) {
		char id[ID_SIZE] = "xxxxxxxx";
		struct sandbox_row row;

		memset(id, names[i][0], 8);
		row = t_row(id, names[i], true);
		row.created_ns = (uint64_t)names[i][0];
		OK(catalog_add_sandbox(c, &row, false, &t_e));
	}
	OK(catalog_each(c, gather, seen, &t_e));
	CHECK_STR(seen, "abd");
	catalog_close(c);
}

static void templates_are_noted_again(void)
{
	begin();
	OK(catalog_note_template(c, "base", "debian", &t_e));
	OK(catalog_note_template(c, "base", "oci", &t_e));
	catalog_close(c);
	CHECK(raw_number("SELECT count(*) FROM templates WHERE kind = 'oci'") == 1);
}

static void a_newer_schema_is_refused(void)
{
	begin();
	catalog_close(c);
	raw("PRAGMA user_version = 99");
	FAILS(catalog_open(&s, &c, &t_e), ERR_FAILED);
	SAYS(t_e.msg, "catalog.db has version 99, this program knows up to");
	SAYS(t_e.hint, "newer cay");
}

static void recipes_of_an_older_catalog_get_the_owner_of_their_sandbox(void)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(64);
	struct sandbox_row got = { 0 };
	struct sandbox_row row = t_row("aaaaaaaa", "", false);

	begin();
	row.recipe = STR("r");
	(void)str_copy(row.owner, sizeof row.owner, STR("thekey01"));
	OK(catalog_add_sandbox(c, &row, false, &t_e));
	catalog_close(c);
	raw("ALTER TABLE sandboxes DROP COLUMN memory;"
	    "ALTER TABLE sandboxes DROP COLUMN cpu_milli;"
	    "ALTER TABLE keys DROP COLUMN limits; ALTER TABLE keys DROP COLUMN owner;"
	    "ALTER TABLE keys DROP COLUMN expires_ns; DROP TABLE settings;"
	    "ALTER TABLE recipes DROP COLUMN owner; DROP TABLE requests; DROP TABLE secrets;"
	    "PRAGMA user_version = 4");
	OK(catalog_open(&s, &c, &t_e));
	OK(catalog_recipe_row(c, "aaaaaaaa", &recipe, &got, &t_e));
	CHECK_STR(got.owner, "thekey01");
	sandbox_row_done(&got);
	catalog_close(c);
}

static void damage_is_named_with_a_way_out(void)
{
	char path[128];
	int fd;

	t_state(&s);
	for (int i = 0; i < 512; i++)
		t_put(&s, "catalog.db", "not a database, ");
	FAILS(catalog_open(&s, &c, &t_e), ERR_FAILED);
	SAYS(t_e.msg, "/catalog.db is damaged");
	SAYS(t_e.hint, "move its whole directory away");
	CHECK(unlinkat(s.fd, "catalog.db", 0) == 0);
	OK(catalog_open(&s, &c, &t_e));
	OK(t_add(c, "aaaaaaaa", "", false));
	catalog_close(c);
	raw("PRAGMA wal_checkpoint(TRUNCATE)");
	snprintf(path, sizeof path, "%s/s/catalog.db", t_dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (off_t at = 1024; at < 8192; at += 16)
		CHECK(pwrite(fd, "garbage garbage ", 16, at) == 16);
	close(fd);
	if (catalog_open(&s, &c, &t_e) == 0) {
		FAILS(t_add(c, "bbbbbbbb", "", false), ERR_FAILED);
		catalog_close(c);
	}
	SAYS(t_e.msg, "/catalog.db is damaged");
}

static void the_catalog_is_closed_to_others(void)
{
	static const char *const names[] = { "catalog.db", "catalog.db-wal", "catalog.db-shm" };
	struct stat st;

	(void)umask(0);
	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(fstatat(s.fd, names[i], &st, 0) == 0 && (st.st_mode & 07777) == 0600);
	catalog_close(c);
	/* A database of an earlier version. */
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(fchmodat(s.fd, names[i], 0644, 0) == 0);
	OK(catalog_open(&s, &c, &t_e));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(fstatat(s.fd, names[i], &st, 0) == 0 && (st.st_mode & 07777) == 0600);
}

static void a_directory_that_cannot_be_written_is_named(void)
{
	pid_t pid;

	begin();
	OK(t_add(c, "aaaaaaaa", "", false));
	catalog_close(c);
	CHECK(chmod(t_dir, 0755) == 0 && fchmod(s.fd, 0555) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(geteuid() == 0 ? setgid(NOBODY) == 0 && setuid(NOBODY) == 0
				     : fchmodat(s.fd, "catalog.db", 0400, 0) == 0);
		if (catalog_open(&s, &c, &t_e) == 0)
			FAILS(t_add(c, "bbbbbbbb", "", false), ERR_SYS);
		CHECK(t_e.kind == ERR_SYS);
		SAYS(t_e.msg, "/catalog.db for writing");
		SAYS(t_e.hint, "CAY_STATE");
		_exit(0);
	}
	t_wait_all(&pid, 1);
	CHECK(fchmod(s.fd, 0700) == 0 && unlinkat(s.fd, "catalog.db", 0) == 0);
	CHECK(fchmod(s.fd, 0555) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(geteuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
		FAILS(catalog_open(&s, &c, &t_e), ERR_SYS);
		CHECK(t_e.sys == EACCES);
		SAYS(t_e.msg, "/catalog.db for writing");
		_exit(0);
	}
	t_wait_all(&pid, 1);
	CHECK(fchmod(s.fd, 0700) == 0);
}

/* Leaves no free block. */
static void fill_disk(void)
{
	auto_close int fd = openat(s.fd, "fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[4096] = { 1 };

	CHECK(fd >= 0);
	while (write(fd, block, sizeof block) > 0)
		;
	CHECK(errno == ENOSPC);
}

static void a_full_disk_fails_cleanly_and_heals(void)
{
	int added = 0;
	char id[ID_SIZE];

	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	t_state(&s);
	CHECK(mount("tmpfs", s.dir, "tmpfs", 0, "size=512k,mode=0700") == 0);
	state_done(&s);
	OK(state_open(&s, &t_e));
	fill_disk();
	FAILS(catalog_open(&s, &c, &t_e), ERR_SYS);
	CHECK(t_e.sys == ENOSPC);
	SAYS(t_e.msg, "catalog.db");
	CHECK(unlinkat(s.fd, "fill", 0) == 0);
	OK(catalog_open(&s, &c, &t_e));
	fill_disk();
	for (;; added++) {
		snprintf(id, sizeof id, "box%08d", added);
		if (t_add(c, id, "", added % 2) < 0)
			break;
		CHECK(added < 1000);
	}
	CHECK(t_e.kind == ERR_SYS && t_e.sys == ENOSPC);
	CHECK(!t_has_row(c, id));
	CHECK(unlinkat(s.fd, "fill", 0) == 0);
	OK(t_add(c, id, "", false));
	reopen();
	for (int i = 0; i <= added; i++) {
		snprintf(id, sizeof id, "box%08d", i);
		CHECK(t_has_row(c, id));
	}
	catalog_close(c);
	state_done(&s);
	CHECK(umount2(s.dir, MNT_DETACH) == 0);
}

/* Each writer opens the database itself; at first all at once, while it does not exist yet. */
static void write_much(int writer, bool slots)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct sandbox_row row = { .ephemeral = i % 10 != 0, .uid_slot = -1 };

		OK(catalog_open(&s, &c, &t_e));
		snprintf(row.id, sizeof row.id, "w%xr%06x", writer & 15, i & 0xffff);
		snprintf(row.name, sizeof row.name, "%s", i % 3 ? "" : row.id);
		OK(catalog_add_sandbox(c, &row, slots, &t_e));
		CHECK(slots ? row.uid_slot >= 0 && row.uid_slot < WRITERS * 2 : row.uid_slot == -1);
		if (i % 10 != 9)
			OK(catalog_del_sandbox(c, row.id, &t_e));
		else
			OK(catalog_set_state(c, row.id, "running", &t_e));
		if (i % 10 == 9 && i >= 10) {
			snprintf(row.id, sizeof row.id, "w%xr%06x", writer & 15, (i - 10) & 0xffff);
			OK(catalog_del_sandbox(c, row.id, &t_e));
		}
		catalog_close(c);
	}
	_exit(0);
}

static int count_row(void *ctx, const struct sandbox_row *row)
{
	CHECK_STR(row->state, "running");
	++*(int *)ctx;
	return 0;
}

static void write_at_once(bool slots)
{
	pid_t pids[WRITERS];
	int rows = 0;

	t_state(&s);
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			write_much(i, slots);
	}
	t_wait_all(pids, WRITERS);
	OK(catalog_open(&s, &c, &t_e));
	OK(catalog_each(c, count_row, &rows, &t_e));
	CHECK(rows == WRITERS);
	catalog_close(c);
	CHECK(raw_number("SELECT integrity_check = 'ok' FROM pragma_integrity_check") == 1);
	CHECK(raw_number("SELECT count(DISTINCT uid_slot) FROM sandboxes") ==
	      (slots ? WRITERS : 0));
}

static void eight_writers_do_not_disturb_each_other(void)
{
	write_at_once(false);
}

static void eight_writers_never_share_a_slot(void)
{
	write_at_once(true);
}

/* Switching to a write-ahead log needs exclusive access. */
static void eight_openers_make_one_database(void)
{
	t_state(&s);
	for (int round = 0; round < 20; round++) {
		pid_t pids[WRITERS];

		for (int i = 0; i < WRITERS; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				OK(catalog_open(&s, &c, &t_e));
				catalog_close(c);
				_exit(0);
			}
		}
		t_wait_all(pids, WRITERS);
		CHECK(unlinkat(s.fd, "catalog.db", 0) == 0);
		CHECK(unlinkat(s.fd, "catalog.db-wal", 0) == 0);
		CHECK(unlinkat(s.fd, "catalog.db-shm", 0) == 0);
	}
}

static void the_log_stays_short(void)
{
	struct stat st;

	begin();
	for (int i = 0; i < 1000; i++) {
		OK(t_add(c, "aaaaaaaa", "", true));
		OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
		if (i % 3 == 0)
			reopen();
		CHECK(fstatat(s.fd, "catalog.db-wal", &st, 0) == 0 && st.st_size < 256 * 1024);
	}
	for (int i = 0; i < 3000; i++) {
		OK(t_add(c, "aaaaaaaa", "", true));
		OK(catalog_del_sandbox(c, "aaaaaaaa", &t_e));
	}
	CHECK(fstatat(s.fd, "catalog.db-wal", &st, 0) == 0 && st.st_size < 5 << 20);
	catalog_close(c);
	CHECK(fstatat(s.fd, "catalog.db-wal", &st, 0) == 0 && st.st_size < 256 * 1024);
}

int main(void)
{
	struct t_case cases[] = {
		T(a_row_round_trips),
		T(states_change_and_only_to_known_ones),
		T(names_are_unique_while_they_are_held),
		T(the_lowest_free_slot_is_given),
		T(a_given_slot_is_taken_unless_another_has_it),
		T(slots_end_at_their_limit),
		T(find_tries_id_then_name_then_prefix),
		T(an_ambiguous_prefix_lists_candidates),
		T(a_missing_sandbox_says_what_was_meant),
		T(rows_are_oldest_first_and_fn_can_stop),
		T(templates_are_noted_again),
		T(a_newer_schema_is_refused),
		T(recipes_of_an_older_catalog_get_the_owner_of_their_sandbox),
		T(damage_is_named_with_a_way_out),
		T(the_catalog_is_closed_to_others),
		T(a_directory_that_cannot_be_written_is_named),
		T(eight_writers_do_not_disturb_each_other),
		T(eight_writers_never_share_a_slot),
		T(eight_openers_make_one_database),
		T(the_log_stays_short),
		T(a_full_disk_fails_cleanly_and_heals),
	};
	size_t n = sizeof cases / sizeof cases[0];

	if (geteuid() != 0)
		cases[n - 1] =
			(struct t_case)T_SKIP(a_full_disk_fails_cleanly_and_heals, "needs root");
	return t_run(cases, n);
}
