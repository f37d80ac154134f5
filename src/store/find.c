/* SPDX-License-Identifier: Apache-2.0 */
/* From what a person types to a sandbox, or to an answer that helps. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "store/db.h"

enum { SHOWN = 4, FAR = 2 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein's distance of two names; more than FAR where one is longer than a name can be. */
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

/* What is at most FAR edits away, and has more than that in common. Empty where nothing is. */
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
	if (near[0])
		return err_hint(e, "did you mean '%s'? list them with: cay ls", near);
	return err_hint(e, "list them with: cay ls");
}

/* Reads the candidates after the first two, too, for the hint. */
static int ambiguous(struct catalog *c, sqlite3_stmt *q, const char *ref, struct err *e)
{
	char list[sizeof e->hint] = "";
	size_t n = 0, shown = 0;
	int r = 1;

	for (; r > 0; r = db_step(c, q, e)) {
		if (++shown > SHOWN)
			break;
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", shown > 1 ? ", " : "",
				      (const char *)sqlite3_column_text(q, 0));
	}
	if (r < 0)
		return -1;
	err_set(e, ERR_INVALID, "'%s' is ambiguous", ref);
	return err_hint(e, "it can be %s%s", list, shown > SHOWN ? ", ..." : "");
}

/* 1: *out is the one id that begins so. 0: none does. */
static int by_prefix(struct catalog *c, const char *ref, char out[ID_SIZE], struct err *e)
{
	/* '~' sorts behind all that an id can hold. */
	static const char sql[] = "SELECT id, count(*) OVER () FROM sandboxes"
				  " WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 5";
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, sql, "t", ref) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r <= 0)
		return r;
	if (sqlite3_column_int64(q, 1) > 1)
		return ambiguous(c, q, ref, e);
	db_text(q, 0, out, ID_SIZE);
	return 1;
}

int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e)
{
	char id[ID_SIZE];
	int r = 0;

	if (!state_id_ok(ref) && !state_name_ok(ref))
		return err_set(e, ERR_INVALID, "'%.80s' is not a sandbox id or name", ref);
	if (state_id_ok(ref))
		r = db_sandbox(c, "id = ?1", ref, ret, e);
	if (r == 0)
		r = db_sandbox(c, "name = ?1", ref, ret, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	r = by_prefix(c, ref, id, e);
	if (r > 0)
		r = db_sandbox(c, "id = ?1", id, ret, e);
	if (r == 0)
		return not_found(c, ref, e);
	return r < 0 ? -1 : 0;
}
