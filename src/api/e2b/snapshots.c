/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/snapshots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/e2b/common.h"
#include "api/e2b/sandboxes.h"
#include "ops/snapshot.h"
#include "store/keys.h"

#define DEFAULT_TAG ":default"
enum { PAGE = 100 };

/* "key OWNER NAME"; each may be empty. */
void snapshot_note_write(char out[SNAPSHOT_NOTE], const char *owner, const char *name)
{
	(void)snprintf(out, SNAPSHOT_NOTE, "key %s %s", owner ? owner : "", name);
}

/* The name in the note of a snapshot that this owner may see; NULL: it may not. */
const char *snapshot_name_for(const struct snapshot_row *row, const char *owner)
{
	const char *note = row->note ? row->note : "", *space;
	size_t n;

	if (row->kind != SNAPSHOT_USER)
		return NULL;
	if (strncmp(note, "key ", 4) != 0 || !(space = strchr(note + 4, ' ')))
		return owner ? NULL : row->name;
	n = (size_t)(space - note - 4);
	if (owner && (strlen(owner) != n || memcmp(owner, note + 4, n) != 0))
		return NULL;
	return space + 1;
}

/* ---- one of them ---- */

struct search {
	const char *owner;
	struct str ref;
	const char *not_id; /* but this one; NULL: any */
	char id[ID_SIZE];   /* of the newest that fits */
};

static int look_at(void *ctx, const struct snapshot_row *row)
{
	struct search *s = ctx;
	const char *name = snapshot_name_for(row, s->owner);

	if (!name || (s->not_id && strcmp(s->not_id, row->id) == 0))
		return 0;
	if (str_is(s->ref, row->id) || (name[0] && str_is(s->ref, name)))
		(void)str_copy(s->id, sizeof s->id, str_of(row->id));
	return 0;
}

static struct str without_tag(const char *ref)
{
	static const size_t tag = sizeof DEFAULT_TAG - 1;
	size_t n = strlen(ref);

	if (n > tag && strcmp(ref + n - tag, DEFAULT_TAG) == 0)
		n -= tag;
	return (struct str){ ref, n };
}

static int search(struct job_run *r, struct search *s, struct err *e)
{
	if (op_snapshot_list(r->cay, NULL, look_at, s, e) < 0)
		return -1;
	return s->id[0] ? 1 : 0;
}

int snapshot_find(struct job_run *r, const char *owner, const char *ref, char ret_id[ID_SIZE],
		  struct err *e)
{
	struct search s = { .owner = owner, .ref = without_tag(ref) };
	int k = search(r, &s, e);

	(void)str_copy(ret_id, ID_SIZE, str_of(s.id));
	return k;
}

static void put_snapshot(struct json *j, const char *id, const char *name)
{
	char text[SNAPSHOT_NAME + sizeof DEFAULT_TAG];

	(void)snprintf(text, sizeof text, "%s%s", name[0] ? name : id, DEFAULT_TAG);
	json_obj(j);
	json_put_c(j, "snapshotID", text);
	json_put_arr(j, "names");
	if (name[0])
		json_c(j, text);
	json_end(j);
	json_end(j);
}

/* ---- quota ---- */

struct count {
	const char *owner;
	uint64_t n;
};

static int count_row(void *ctx, const struct snapshot_row *row)
{
	struct count *c = ctx;

	c->n += snapshot_name_for(row, c->owner) != NULL;
	return 0;
}

int snapshot_check_quota(struct job_run *r, const char *owner, struct err *e)
{
	struct count c = { .owner = owner };
	struct key_limits k;

	if (!owner)
		return 0;
	if (catalog_owner_limits(r->cay->catalog, owner, &k, e) < 0 ||
	    op_snapshot_list(r->cay, NULL, count_row, &c, e) < 0)
		return -1;
	if (c.n < k.of[KEY_SNAPSHOTS])
		return 0;
	(void)err_set(e, ERR_LIMIT, "the key has %llu snapshots, as many as it may",
		      (unsigned long long)c.n);
	return err_code(e, "quota.snapshots", NULL);
}

/* ---- routes ---- */

/* The older one of this name: a name means the newest. */
static int forget_older(struct job_run *r, const struct e2b_about *a, const char *name,
			const char *id, struct err *e)
{
	struct search s = { .owner = a->ask.owner, .ref = str_of(name), .not_id = id };
	char removed[ID_SIZE];
	int k = name[0] ? search(r, &s, e) : 0;

	return k > 0 ? op_snapshot_remove(r->cay, s.id, removed, e) : k;
}

int e2b_snapshot(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct snapshot_spec spec = { 0 };
	struct snapshot_result made;
	const char *name = "";
	char note[SNAPSHOT_NOTE];
	struct json j;

	if (e2b_about_read(r, &a, e) < 0 || field_text(a.ask.body, "name", &name, e) < 0)
		return -1;
	if (name[0] && (!state_name_ok(name) || strlen(name) >= SNAPSHOT_NAME)) {
		(void)err_set(e, ERR_INVALID, "name must be letters, digits and '_.-', at most %d",
			      SNAPSHOT_NAME - 1);
		return err_field(e, "name");
	}
	if (snapshot_check_quota(r, a.ask.owner, e) < 0)
		return -1;
	snapshot_note_write(note, a.ask.owner, name);
	spec.sandbox = a.row.id;
	spec.note = note;
	if (op_snapshot(r->cay, &spec, &made, e) < 0 || forget_older(r, &a, name, made.id, e) < 0)
		return -1;
	json_init(&j, &b);
	put_snapshot(&j, made.id, name);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, 201, &b, e);
}

/* A page: those that were made after `after`. */
struct page {
	const char *owner, *name;
	struct json j;
	uint64_t after, last;
	int64_t left;
	bool more;
};

static int put_row(void *ctx, const struct snapshot_row *row)
{
	struct page *p = ctx;
	const char *name = snapshot_name_for(row, p->owner);

	if (!name || row->created_ns <= p->after ||
	    (p->name && !str_is(without_tag(p->name), name)))
		return 0;
	if (p->left == 0) {
		p->more = true;
		return 1;
	}
	p->left--;
	p->last = row->created_ns;
	put_snapshot(&p->j, row->id, name);
	return 0;
}

/* A whole number of the query. */
static int query_number(const struct e2b_ask *a, const char *key, uint64_t most, uint64_t *ret,
			struct err *e)
{
	const char *text = e2b_query(a, key);
	unsigned long long n;
	char *end;

	if (!text || !text[0])
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || n > most) {
		(void)err_set(e, ERR_INVALID, "%s: '%.64s' is not valid", key, text);
		return err_field(e, "%s", key);
	}
	*ret = n;
	return 0;
}

static int list(struct job_run *r, const struct e2b_ask *a, struct page *p, struct buf *b,
		struct err *e)
{
	char next[24] = "";
	struct api_answer answer = { .status = 200 };

	json_init(&p->j, b);
	json_arr(&p->j);
	if (op_snapshot_list(r->cay, e2b_query(a, "sandboxID"), put_row, p, e) < 0 &&
	    e->kind != ERR_NOT_FOUND)
		return -1;
	json_end(&p->j);
	if (json_done(&p->j) < 0)
		return err_sys(e, ENOMEM, "answer");
	if (p->more)
		(void)snprintf(next, sizeof next, "%llu", (unsigned long long)p->last);
	answer.next = str_of(next);
	answer.body = buf_str(b);
	return api_answer_put(r->out, &answer) < 0
		       ? err_set(e, ERR_FAILED, "the answer is too long")
		       : 0;
}

int e2b_snapshots(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	uint64_t limit = PAGE;
	struct page p = { 0 };

	if (e2b_ask_read(r, &a, e) < 0 || query_number(&a, "limit", PAGE, &limit, e) < 0 ||
	    query_number(&a, "nextToken", UINT64_MAX, &p.after, e) < 0)
		return -1;
	if (limit == 0)
		return err_set(e, ERR_INVALID, "limit must be from 1 to %d", PAGE);
	p.owner = a.owner;
	p.name = e2b_query(&a, "name");
	p.left = (int64_t)limit;
	return list(r, &a, &p, &b, e);
}

int e2b_snapshot_remove(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	char id[ID_SIZE], removed[ID_SIZE];
	int k;

	if (e2b_ask_read(r, &a, e) < 0)
		return -1;
	k = snapshot_find(r, a.owner, a.id, id, e);
	if (k == 0) {
		(void)err_set(e, ERR_NOT_FOUND, "template '%.64s' not found", a.id);
		return err_code(e, "template.unknown", NULL);
	}
	if (k < 0 || op_snapshot_remove(r->cay, id, removed, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}
