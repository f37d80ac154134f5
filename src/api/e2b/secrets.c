/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: stored and listed. No answer has a value. */
#include "store/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/e2b/common.h"
#include "api/e2b/sandboxes.h"
#include "base/clock.h"
#include "base/limits.h"

enum { PAGE = 100 };

static const char *owner_of(const struct e2b_ask *a)
{
	return a->owner ? a->owner : "";
}

static void put_secret(struct json *j, const struct secret_row *row)
{
	char created[CLOCK_TEXT_SIZE], updated[CLOCK_TEXT_SIZE];

	clock_text(row->created_ns, created);
	clock_text(row->updated_ns, updated);
	json_obj(j);
	json_put_c(j, "secretID", row->id);
	json_put_c(j, "name", row->name);
	json_put_u64(j, "currentVersion", row->version);
	json_put_raw(j, "metadata", str_of(row->metadata ? row->metadata : "{}"));
	json_put_c(j, "createdAt", created);
	json_put_c(j, "updatedAt", updated);
	json_end(j);
}

/* An object of texts, written anew. NULL: none was given. */
static int read_metadata(const json_t *body, char **ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(SECRET_METADATA);
	const json_t *given = json_object_get(body, "metadata");
	const char *key;
	json_t *value;
	struct json j;

	*ret = NULL;
	if (!given || json_is_null(given))
		return 0;
	json_init(&j, &b);
	json_obj(&j);
	json_object_foreach((json_t *)(uintptr_t)given, key, value)
	{
		if (!json_is_string(value))
			return err_set(e, ERR_INVALID, "metadata must be an object of texts");
		json_put_c(&j, key, json_string_value(value));
	}
	json_end(&j);
	if (!json_is_object(given) || json_done(&j) < 0)
		return err_set(e, ERR_INVALID, "metadata must be an object of at most %d bytes",
			       SECRET_METADATA);
	*ret = buf_take(&b, &(size_t){ 0 });
	return 0;
}

static int read_value(const json_t *body, const char **ret, struct err *e)
{
	if (field_text(body, "value", ret, e) < 0)
		return -1;
	if (!*ret || !(*ret)[0] || strlen(*ret) > SECRET_VALUE) {
		(void)err_set(e, ERR_INVALID, "value must have 1 to %d bytes", SECRET_VALUE);
		return err_field(e, "value");
	}
	return 0;
}

static int answer_row(void *ctx, const struct secret_row *row)
{
	put_secret(ctx, row);
	return 1;
}

/* The secret as it is now. */
static int answer(struct job_run *r, const struct e2b_ask *a, const char *ref, int status,
		  struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	struct json j;

	json_init(&j, &b);
	if (catalog_each_secret(r->cay->catalog, owner_of(a), ref, 0, answer_row, &j, e) < 0)
		return -1;
	if (!b.len)
		return err_set(e, ERR_NOT_FOUND, "secret '%.128s' not found", ref);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, status, &b, e);
}

int e2b_secret_create(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	auto_free char *metadata = NULL;
	const char *name = "", *value = NULL;
	struct secret_row row = { 0 };

	if (e2b_ask_read(r, &a, e) < 0 || field_text(a.body, "name", &name, e) < 0 ||
	    read_value(a.body, &value, e) < 0 || read_metadata(a.body, &metadata, e) < 0)
		return -1;
	if (!name[0] || !state_name_ok(name) ||
	    !str_copy(row.name, sizeof row.name, str_of(name))) {
		(void)err_set(e, ERR_INVALID, "name must be letters, digits and '_.-', at most %d",
			      (int)sizeof row.name - 1);
		return err_field(e, "name");
	}
	row.metadata = metadata ? metadata : "{}";
	if (cay_catalog(r->cay, e) < 0 || state_id_new(row.id, e) < 0 ||
	    catalog_add_secret(r->cay->catalog, owner_of(&a), &row, value, e) < 0)
		return -1;
	return answer(r, &a, row.id, 201, e);
}

int e2b_secret_update(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	auto_free char *metadata = NULL;
	const char *value = NULL;

	if (e2b_ask_read(r, &a, e) < 0 || read_value(a.body, &value, e) < 0 ||
	    read_metadata(a.body, &metadata, e) < 0 || cay_catalog(r->cay, e) < 0 ||
	    catalog_set_secret(r->cay->catalog, owner_of(&a), a.id, value, metadata, e) < 0)
		return -1;
	return answer(r, &a, a.id, 200, e);
}

int e2b_secret_info(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };

	if (e2b_ask_read(r, &a, e) < 0 || cay_catalog(r->cay, e) < 0)
		return -1;
	return answer(r, &a, a.id, 200, e);
}

int e2b_secret_remove(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };

	if (e2b_ask_read(r, &a, e) < 0 || cay_catalog(r->cay, e) < 0 ||
	    catalog_del_secret(r->cay->catalog, owner_of(&a), a.id, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

struct page {
	struct json j;
	long left;
	uint64_t last_ns;
	bool more;
};

static int put_row(void *ctx, const struct secret_row *row)
{
	struct page *p = ctx;

	if (p->left == 0) {
		p->more = true;
		return 1;
	}
	p->left--;
	p->last_ns = row->created_ns;
	put_secret(&p->j, row);
	return 0;
}

int e2b_secrets(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	struct api_answer out = { .status = 200 };
	struct page p = { .left = PAGE };
	const char *limit, *token;
	char next[24] = "";

	if (e2b_ask_read(r, &a, e) < 0 || cay_catalog(r->cay, e) < 0)
		return -1;
	limit = e2b_query(&a, "limit");
	token = e2b_query(&a, "nextToken");
	if (limit)
		p.left = strtol(limit, NULL, 10);
	if (p.left < 1 || p.left > PAGE)
		return err_set(e, ERR_INVALID, "limit must be 1 to %d", PAGE);
	json_init(&p.j, &b);
	json_arr(&p.j);
	if (catalog_each_secret(r->cay->catalog, owner_of(&a), NULL,
				token ? strtoull(token, NULL, 10) : 0, put_row, &p, e) < 0)
		return -1;
	json_end(&p.j);
	if (json_done(&p.j) < 0)
		return err_set(e, ERR_FAILED, "the list is too long; ask for fewer at once");
	if (p.more)
		(void)snprintf(next, sizeof next, "%llu", (unsigned long long)p.last_ns);
	out.next = str_of(next);
	out.body = buf_str(&b);
	return api_answer_put(r->out, &out) < 0 ? err_set(e, ERR_FAILED, "the list is too long")
						: 0;
}
