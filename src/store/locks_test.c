/* SPDX-License-Identifier: Apache-2.0 */
#include "store/locks.h"

#include "base/clock.h"
#include "store/store_test.h"

static struct state s;
static struct catalog *catalog;

static void begin(void)
{
	t_state(&s);
	OK(catalog_open(&s, &catalog, &t_e));
}

/* Returns the lock's descriptor. */
static int make(const char *id, uint64_t created_ns, const char *options)
{
	struct sandbox_row row = { .uid_slot = 7, .created_ns = created_ns, .ephemeral = true };
	auto_done(buf_done) struct buf b = BUF_INIT(LOCK_RECORD_MAX);
	int fd = FD_NONE;

	(void)str_copy(row.id, sizeof row.id, str_of(id));
	(void)str_copy(row.template_, sizeof row.template_, STR("host"));
	row.spec = (char *)options;
	CHECK(lock_record_put(&b, &row) == 0);
	OK(state_lock_new(&s, id, buf_str(&b), &fd, &t_e));
	lock_record_show(fd, true);
	return fd;
}

static void a_living_sandbox_without_a_row_is_found_by_id_and_by_prefix(void)
{
	struct sandbox_row row = { 0 };
	int fd;

	begin();
	fd = make("abcdefgh", 5, "{\"labels\":{}}");
	OK(catalog_find(catalog, "abcdefgh", &row, &t_e));
	CHECK(row.unlisted && row.ephemeral && row.uid_slot == 7 && row.created_ns == 5);
	CHECK_STR(row.id, "abcdefgh");
	CHECK_STR(row.template_, "host");
	CHECK_STR(row.state, "running");
	CHECK_STR(row.spec, "{\"labels\":{}}");
	sandbox_row_done(&row);
	OK(catalog_find(catalog, "abc", &row, &t_e));
	CHECK_STR(row.id, "abcdefgh");
	sandbox_row_done(&row);
	/* A dead sandbox is not listed, whatever its file says. */
	fd_close(&fd);
	FAILS(catalog_find(catalog, "abcdefgh", &row, &t_e), ERR_NOT_FOUND);
	FAILS(catalog_find(catalog, "abc", &row, &t_e), ERR_NOT_FOUND);
	catalog_close(catalog);
}

static void a_prefix_of_a_row_and_of_a_record_is_ambiguous(void)
{
	struct sandbox_row in = t_row("abcdxxxx", "", false), row = { 0 };
	auto_close int fd = FD_NONE;

	begin();
	fd = make("abcdefgh", 5, NULL);
	OK(catalog_add_sandbox(catalog, &in, false, &t_e));
	FAILS(catalog_find(catalog, "abcd", &row, &t_e), ERR_INVALID);
	SAYS(t_e.hint, "abcdefgh");
	SAYS(t_e.hint, "abcdxxxx");
	OK(catalog_find(catalog, "abcde", &row, &t_e));
	CHECK_STR(row.id, "abcdefgh");
	sandbox_row_done(&row);
	catalog_close(catalog);
}

static char seen[256];

static int note_id(void *ctx, const struct sandbox_row *row)
{
	size_t n = strlen(seen);

	(void)snprintf(seen + n, sizeof seen - n, "%s%c ", row->id, row->unlisted ? '-' : '+');
	return ctx != NULL;
}

static void lists_hold_rows_and_records_oldest_first_and_each_once(void)
{
	struct sandbox_row in = t_row("rowrowrow", "", false);
	auto_close int old = FD_NONE, young = FD_NONE, both = FD_NONE, none = FD_NONE;

	begin();
	young = make("youngest", UINT64_MAX - 1, NULL);
	old = make("eldereld", 1, NULL);
	both = make("rowrowrow", 3, NULL); /* its row was added later: the row lists it */
	in.created_ns = 2;
	OK(catalog_add_sandbox(catalog, &in, false, &t_e));
	OK(state_lock(&s, "readyone", &none, &t_e)); /* no record: not claimed yet */
	OK(catalog_each(catalog, note_id, NULL, &t_e));
	CHECK_STR(seen, "eldereld- rowrowrow+ youngest- ");
	seen[0] = '\0';
	OK(catalog_each(catalog, note_id, &s, &t_e));
	CHECK_STR(seen, "eldereld- ");
	catalog_close(catalog);
}

/* A truncated record, a record of another sandbox, or no record. */
static void incomplete_records_do_not_count(void)
{
	struct sandbox_row row = { 0 };
	char path[64] = "locks/abcdefgh";
	auto_close int fd = FD_NONE;

	t_state(&s);
	fd = make("abcdefgh", 5, "{\"dirs\":[]}");
	CHECK(lock_record_read(s.fd, "abcdefgh", &row) == 1);
	sandbox_row_done(&row);
	for (int size = 60; size >= 0; size--) {
		CHECK(ftruncate(fd, size) == 0);
		CHECK(lock_record_read(s.fd, "abcdefgh", &row) == 0);
	}
	CHECK(renameat(s.fd, path, s.fd, "locks/hgfedcba") == 0);
	fd_close(&fd);
	fd = make("abcdefgh", 5, NULL);
	CHECK(renameat(s.fd, path, s.fd, "locks/hgfedcba") == 0);
	CHECK(lock_record_read(s.fd, "hgfedcba", &row) == 0);
	t_put(&s, path, "garbage");
	CHECK(lock_record_read(s.fd, "abcdefgh", &row) == 0);
	CHECK(lock_record_read(s.fd, "../../etc", &row) == 0);
	CHECK(mkfifoat(s.fd, "locks/fifofifo", 0600) == 0);
	CHECK(lock_record_read(s.fd, "fifofifo", &row) == 0);
	/* One byte more than the limit of a record. */
	CHECK(ftruncate(fd, LOCK_RECORD_MAX + 1) == 0);
	CHECK(lock_record_read(s.fd, "hgfedcba", &row) == 0);
}

static void a_claimed_sandbox_gets_its_record_while_its_warden_holds_the_lock(void)
{
	struct sandbox_row row = { .uid_slot = -1, .created_ns = 9, .id = "readyone" }, out = { 0 };
	auto_done(buf_done) struct buf b = BUF_INIT(LOCK_RECORD_MAX);
	auto_close int fd = FD_NONE, record = FD_NONE;

	t_state(&s);
	OK(state_lock(&s, "readyone", &fd, &t_e));
	CHECK(lock_record_read(s.fd, "readyone", &out) == 0);
	CHECK(lock_record_put(&b, &row) == 0);
	OK(lock_record_write(&s, "readyone", buf_str(&b), &record, &t_e));
	CHECK(lock_record_read(s.fd, "readyone", &out) == 0);
	lock_record_show(record, true);
	CHECK(lock_record_read(s.fd, "readyone", &out) == 1 && out.created_ns == 9);
	CHECK(out.uid_slot == -1 && !out.spec);
	lock_record_show(record, false);
	CHECK(lock_record_read(s.fd, "readyone", &out) == 0);
	FAILS(lock_record_write(&s, "nobodyis", buf_str(&b), &record, &t_e), ERR_SYS);
}

static void the_dead_among_the_next_names_are_found_also_behind_the_last(void)
{
	char ids[3][ID_SIZE];
	auto_close int living = FD_NONE;
	int fd;

	t_state(&s);
	for (const char *id = "abcdeghxz"; *id; id++) {
		char name[9];

		memset(name, *id, 8);
		name[8] = '\0';
		fd = make(name, 1, NULL);
		if (*id == 'x')
			living = fd;
		else
			fd_close(&fd);
	}
	OK(state_lock(&s, "hhhhhhhi", &fd, &t_e)); /* dead, but it has a row */
	fd_close(&fd);
	CHECK(lock_records_dead(&s, "bbbbbbbb", ids, 3) == 3);
	CHECK_STR(ids[0], "cccccccc");
	CHECK_STR(ids[2], "eeeeeeee");
	CHECK(lock_records_dead(&s, "hhhhhhhh", ids, 3) == 1); /* hhhhhhhi, x, z */
	CHECK_STR(ids[0], "zzzzzzzz");
	CHECK(lock_records_dead(&s, "zzzzzzzz", ids, 2) == 2);
	CHECK_STR(ids[0], "aaaaaaaa");
	CHECK(lock_records_dead(&s, "yyyyyyyy", ids, 3) == 3);
	CHECK_STR(ids[0], "zzzzzzzz");
	CHECK_STR(ids[2], "bbbbbbbb");
}

T_MAIN(T(a_living_sandbox_without_a_row_is_found_by_id_and_by_prefix),
       T(a_prefix_of_a_row_and_of_a_record_is_ambiguous),
       T(lists_hold_rows_and_records_oldest_first_and_each_once),
       T(incomplete_records_do_not_count),
       T(a_claimed_sandbox_gets_its_record_while_its_warden_holds_the_lock),
       T(the_dead_among_the_next_names_are_found_also_behind_the_last))
