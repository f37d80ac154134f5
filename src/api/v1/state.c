/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, rollback, fork and transactions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/e2b/snapshots.h"
#include "api/v1/work.h"
#include "ops/fork.h"
#include "ops/json.h"

enum { PAGE = 100 };

/*
 * What a client sees of a snapshot. Those of keys have key and name in their note. False: it may
 * not see it. The copy borrows from row.
 */
static bool snapshot_seen(const struct snapshot_row *row, const char *owner,
			  struct snapshot_row *ret)
{
	const char *name = snapshot_name_for(row, owner);

	if (!name && (owner || row->kind == SNAPSHOT_FORK))
		return false;
	*ret = *row;
	if (name && row->note && strncmp(row->note, "key ", 4) == 0) {
		(void)str_copy(ret->name, sizeof ret->name, str_of(name));
		ret->note = NULL;
	}
	return true;
}

struct search {
	const char *owner, *ref;
	char id[ID_SIZE];
	struct json *j; /* where it is written, or NULL */
};

static int look_at(void *ctx, const struct snapshot_row *row)
{
	struct search *s = ctx;
	struct snapshot_row seen;

	if (!snapshot_seen(row, s->owner, &seen) ||
	    (strcmp(seen.id, s->ref) != 0 && strcmp(seen.name, s->ref) != 0))
		return 0;
	(void)str_copy(s->id, sizeof s->id, str_of(seen.id));
	if (s->j)
		json_snapshot(s->j, &seen);
	return 1;
}

static int search(struct job_run *r, struct search *s, struct err *e)
{
	if (op_snapshot_list(r->cay, NULL, look_at, s, e) < 0)
		return -1;
	return s->id[0] ? 0 : v1_unknown("snapshot", "snapshot.unknown", s->ref, e);
}

int v1_find_snapshot(struct job_run *r, const struct v1_ask *a, const char *ref, char ret[ID_SIZE],
		     struct err *e)
{
	struct search s = { .owner = a->in.owner, .ref = ref };

	if (search(r, &s, e) < 0)
		return -1;
	(void)str_copy(ret, ID_SIZE, str_of(s.id));
	return 0;
}

int v1_job_snapshot_get(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct search s = { 0 };
	struct json j;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	json_init(&j, &b);
	s = (struct search){ .owner = a.in.owner, .ref = a.in.id, .j = &j };
	return search(r, &s, e) < 0 ? -1 : v1_reply(r, 200, &j, &b, e);
}

int v1_job_snapshot_delete(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	char id[ID_SIZE], removed[ID_SIZE];

	if (v1_ask_read(r, &a, e) < 0 || v1_find_snapshot(r, &a, a.in.id, id, e) < 0 ||
	    op_snapshot_remove(r->cay, id, removed, e) < 0)
		return -1;
	return v1_reply_empty(r, 204, e);
}

/* ---- lists ---- */

/* Behind the cursor, which is the time and id of the last one of the page before. */
struct page {
	const char *owner, *sandbox;
	uint64_t limit, n, after_ns;
	const char *after_id;
	struct json j;
	char next[64], last[64];
};

static int put_snapshot(void *ctx, const struct snapshot_row *row)
{
	struct page *p = ctx;
	struct snapshot_row seen;

	if (!snapshot_seen(row, p->owner, &seen) ||
	    (p->sandbox && strcmp(p->sandbox, row->sandbox) != 0))
		return 0;
	if (row->created_ns < p->after_ns ||
	    (row->created_ns == p->after_ns && strcmp(row->id, p->after_id) <= 0))
		return 0;
	if (p->n == p->limit) {
		memcpy(p->next, p->last, sizeof p->next);
		return 1;
	}
	p->n++;
	(void)snprintf(p->last, sizeof p->last, "%llu.%s", (unsigned long long)row->created_ns,
		       row->id);
	json_snapshot(&p->j, &seen);
	return 0;
}

int v1_job_snapshots(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct page p = { 0 };
	const char *after;
	char *end;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	p.owner = a.in.owner;
	p.sandbox = v1_text(a.in.query, "sandbox");
	p.limit = v1_number(a.in.query, "limit");
	if (!p.limit)
		p.limit = PAGE;
	after = v1_text(a.in.query, "after");
	if (after) {
		p.after_ns = strtoull(after, &end, 10);
		p.after_id = end + 1;
		if (!p.after_ns || *end != '.') {
			(void)err_set(e, ERR_INVALID, "after is not a cursor of this list");
			return err_field(e, "after");
		}
	}
	v1_list_begin(&p.j, &b);
	if (op_snapshot_list(r->cay, NULL, put_snapshot, &p, e) < 0)
		return -1;
	return v1_list_end(r, &p.j, &b, p.next[0] ? p.next : NULL, e);
}

/* ---- of a sandbox ---- */

/* Names of a key's snapshots are its own, so they are checked here. */
static int key_note(struct job_run *r, const struct v1_ask *a, const char *name,
		    char note[SNAPSHOT_NOTE], struct err *e)
{
	char other[ID_SIZE];
	struct err ignored = { 0 };

	if (v1_text(a->in.body, "note")) {
		(void)err_set(e, ERR_NOT_ALLOWED, "note: only the host's user may give this");
		return err_field(e, "note");
	}
	if (name && !state_name_ok(name)) {
		(void)err_set(e, ERR_INVALID, "name must be letters, digits and '_.-'");
		return err_field(e, "name");
	}
	if (name && v1_find_snapshot(r, a, name, other, &ignored) == 0) {
		(void)err_set(e, ERR_CONFLICT, "the name '%s' is taken by snapshot '%s'", name,
			      other);
		(void)err_code(e, "name.taken", NULL);
		return err_field(e, "name");
	}
	snapshot_note_write(note, a->in.owner, name ? name : "");
	return 0;
}

int v1_job_snapshot(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct snapshot_spec spec = { 0 };
	struct snapshot_result made;
	char note[SNAPSHOT_NOTE];
	const char *name;
	struct json j;

	if (v1_about(r, &a, e) < 0)
		return -1;
	name = v1_text(a.in.body, "name");
	spec = (struct snapshot_spec){ .sandbox = a.row.id,
				       .name = name,
				       .note = v1_text(a.in.body, "note"),
				       .sync = v1_is(a.in.body, "sync") };
	if (a.in.owner) {
		if (key_note(r, &a, name, note, e) < 0 ||
		    snapshot_check_quota(r, a.in.owner, e) < 0)
			return -1;
		spec.name = NULL;
		spec.note = note;
	}
	if (op_snapshot(r->cay, &spec, &made, e) < 0)
		return -1;
	if (a.in.owner && name)
		(void)str_copy(made.name, sizeof made.name, str_of(name));
	json_init(&j, &b);
	json_snapshot_made(&j, &made);
	return v1_reply(r, 201, &j, &b, e);
}

int v1_job_rollback(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct rollback_spec spec = { 0 };
	struct rollback_result res;
	char id[ID_SIZE];
	struct json j;

	if (v1_about(r, &a, e) < 0)
		return -1;
	spec = (struct rollback_spec){ .sandbox = a.row.id,
				       .snapshot = v1_text(a.in.body, "snapshot"),
				       .force = v1_is(a.in.body, "force") };
	if (spec.snapshot) {
		if (v1_find_snapshot(r, &a, spec.snapshot, id, e) < 0)
			return err_field(e, "snapshot");
		spec.snapshot = id;
	}
	if (op_rollback(r->cay, &spec, &res, e) < 0)
		return -1;
	json_init(&j, &b);
	json_rollback(&j, &res);
	return v1_reply(r, 200, &j, &b, e);
}

static int put_fork(void *ctx, unsigned i, const struct creation *n)
{
	struct created made;

	(void)i;
	created_fill(&made, n);
	json_forked(ctx, &made);
	return 0;
}

static int fork_of(struct job_run *r, const struct v1_ask *a, const char *source, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	unsigned count = (unsigned)v1_number(a->in.body, "count");
	struct json j;
	const struct fork_spec spec = { .count = count ? count : 1,
					.name = v1_text(a->in.body, "name"),
					.numbered = count > 1,
					.fn = put_fork,
					.ctx = &j,
					.owner = a->in.owner };

	v1_list_begin(&j, &b);
	if (op_fork(r->cay, source, &spec, e) < 0)
		return v1_hide_taken(a, spec.name ? spec.name : "", e);
	json_end(&j);
	json_put_nil(&j, "next");
	json_end(&j);
	return v1_reply(r, 201, &j, &b, e);
}

int v1_job_fork(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };

	return v1_about(r, &a, e) < 0 ? -1 : fork_of(r, &a, a.row.id, e);
}

int v1_job_snapshot_fork(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	char id[ID_SIZE];

	if (v1_ask_read(r, &a, e) < 0 || v1_find_snapshot(r, &a, a.in.id, id, e) < 0)
		return -1;
	return fork_of(r, &a, id, e);
}

/* ---- transactions ---- */

/* The transaction of the path must be one of this sandbox. */
static int check_tx(struct job_run *r, const struct v1_ask *a, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row tx = { 0 };
	int k = state_id_ok(a->sub) ? catalog_get_snapshot(r->cay->catalog, a->sub, &tx, e) : 0;

	if (k < 0)
		return -1;
	if (k == 0 || tx.kind != SNAPSHOT_TX || strcmp(tx.sandbox, a->row.id) != 0)
		return v1_unknown("transaction", "tx.unknown", a->sub, e);
	return 0;
}

static int reply_tx(struct job_run *r, int status, const struct tx_result *res, const char *done,
		    struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct json j;

	json_init(&j, &b);
	json_tx(&j, res, done);
	return v1_reply(r, status, &j, &b, e);
}

int v1_job_tx_begin(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct tx_result res;

	if (v1_about(r, &a, e) < 0 ||
	    op_tx_begin(r->cay, a.row.id, v1_is(a.in.body, "alone"), &res, e) < 0)
		return -1;
	return reply_tx(r, 201, &res, "begin", e);
}

int v1_job_tx_commit(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct tx_result res;

	if (v1_about(r, &a, e) < 0 || check_tx(r, &a, e) < 0 ||
	    op_tx_commit(r->cay, a.row.id, a.sub, &res, e) < 0)
		return -1;
	return reply_tx(r, 200, &res, "commit", e);
}

int v1_job_tx_abort(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct tx_result res;

	if (v1_about(r, &a, e) < 0 || check_tx(r, &a, e) < 0 ||
	    op_tx_abort(r->cay, a.row.id, a.sub, v1_is(a.in.body, "force"), &res, e) < 0)
		return -1;
	return reply_tx(r, 200, &res, "abort", e);
}
