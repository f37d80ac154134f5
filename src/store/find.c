/* SPDX-License-Identifier: Apache-2.0 */
/* Find a sandbox by what the user typed, or give a helpful error. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "store/db.h"
#include "store/locks.h"

enum { SHOWN = 4, FAR = 2 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance of two names; more than FAR if one is too long for a name. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LIMIT_NAME + 1], n = strlen(b);

	if (n > LIMIT_NAME)
		return FAR + 1;
	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 1; k <= n; k++) {
			size_t up = row[k];

			row[k] = least(up + 1, row[k - 1] + 1, diagonal + (a[i] != b[k - 1]));
			diagonal = up;
		}
	}
	return row[n];
}

/* The nearest name within FAR edits that has more than that in common. Empty if there is none. */
static int nearest(struct catalog *c, const char *ref, char out[LIMIT_NAME + 1], struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	size_t best = FAR + 1, len = strlen(ref);
	int r;

	out[0] = '\0';
	if (db_query(c, &q, e,
		     "SELECT name FROM sandboxes WHERE name IS NOT NULL"
		     " UNION ALL SELECT id FROM sandboxes",
		     "") < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0) {
		const char *text = (const char *)sqlite3_column_text(q, 0);
		size_t d = text ? distance(ref, text) : best;

		if (d < best && d < len) {
			best = d;
			db_text(q, 0, out, LIMIT_NAME + 1);
		}
	}
	return r;
}

static int not_found(struct catalog *c, const char *ref, struct err *e)
{
	char near[LIMIT_NAME + 1];

	if (nearest(c, ref, near, e) < 0)
		return -1;
	err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", ref);
	return near[0] ? err_code(e, "sandbox.misspelt", near)
		       : err_code(e, "sandbox.not_found", NULL);
}

/* The ids that start with what the user typed. */
struct candidates {
	char ids[SHOWN + 1][ID_SIZE];
	int n; /* number of all; those beyond the array are only counted */
};

static void add_candidate(struct candidates *m, const char *id)
{
	if (m->n < (int)ARRAY_LEN(m->ids))
		(void)str_copy(m->ids[m->n], ID_SIZE, str_of(id));
	m->n++;
}

static int ambiguous(const struct candidates *m, const char *ref, struct err *e)
{
	char list[sizeof e->hint] = "";
	size_t n = 0;

	for (int i = 0; i < m->n && i < SHOWN; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", m->ids[i]);
	err_set(e, ERR_INVALID, "'%s' is ambiguous", ref);
	return err_hint(e, "it can be %s%s", list, m->n > SHOWN ? ", ..." : "");
}

static int add_rows(struct catalog *c, const char *ref, struct candidates *m, struct err *e)
{
	/* '~' sorts after every character of an id. */
	static const char sql[] = "SELECT id FROM sandboxes"
				  " WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 5";
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, sql, "t", ref) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0)
		add_candidate(m, (const char *)sqlite3_column_text(q, 0));
	return r;
}

/* Those that have no row. */
static int add_unlisted(struct catalog *c, const char *ref, struct candidates *m, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;
	int r = state_list_ids(c->state_fd, "locks", &ids, &n);

	for (size_t i = 0; i < n && r >= 0; i++) {
		struct sandbox_row row = { 0 };

		if (strncmp(ids[i], ref, strlen(ref)) != 0)
			continue;
		if (db_sandbox(c, "id = ?1", ids[i], &row, e) != 0) {
			sandbox_row_done(&row);
			continue;
		}
		r = lock_record_read(c->state_fd, ids[i], &row);
		if (r > 0)
			add_candidate(m, ids[i]);
		sandbox_row_done(&row);
	}
	return r < 0 ? err_sys(e, -r, "look for sandbox '%s'", ref) : 0;
}

/* 1: *out is the only id with this prefix. 0: there is none. */
static int by_prefix(struct catalog *c, const char *ref, char out[ID_SIZE], struct err *e)
{
	struct candidates m = { 0 };

	if (add_rows(c, ref, &m, e) < 0 || add_unlisted(c, ref, &m, e) < 0)
		return -1;
	if (m.n > 1)
		return ambiguous(&m, ref, e);
	if (m.n == 1)
		(void)str_copy(out, ID_SIZE, str_of(m.ids[0]));
	return m.n;
}

/* By the whole id, with or without a row. 1, 0 or -1. */
static int by_id(struct catalog *c, const char *id, struct sandbox_row *ret, struct err *e)
{
	int r = db_sandbox(c, "id = ?1", id, ret, e);

	if (r != 0)
		return r;
	r = lock_record_read(c->state_fd, id, ret);
	return r < 0 ? err_sys(e, -r, "look for sandbox '%s'", id) : r;
}

int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e)
{
	char id[ID_SIZE];
	int r = 0;

	if (!state_id_ok(ref) && !state_name_ok(ref))
		return err_set(e, ERR_INVALID, "'%.80s' is not a sandbox id or name", ref);
	if (state_id_ok(ref))
		r = by_id(c, ref, ret, e);
	if (r == 0)
		r = db_sandbox(c, "name = ?1", ref, ret, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	r = by_prefix(c, ref, id, e);
	if (r > 0)
		r = by_id(c, id, ret, e);
	if (r == 0)
		return not_found(c, ref, e);
	return r < 0 ? -1 : 0;
}
