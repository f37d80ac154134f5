/* SPDX-License-Identifier: Apache-2.0 */
/* The host: policies, pools, keys, cleaning, and what it gives. */
#include <errno.h>
#include <string.h>

#include "api/v1/work.h"
#include "ops/doctor/doctor.h"
#include "ops/json.h"
#include "ops/key.h"
#include "ops/policy.h"
#include "ops/policy_json.h"

/* ---- policies ---- */

int v1_job_policy_get(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(policy_record_done) struct policy_record p = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0 || op_policy_record(r->cay, a.row.id, &p, e) < 0)
		return -1;
	json_init(&j, &b);
	json_policy_record(&j, &p);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_policy_set(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(v1_spec_done) struct v1_spec s = { 0 };
	auto_done(policy_set_result_done) struct policy_set_result res = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0 || v1_policy_read(&a, a.in.body, &s, NULL, e) < 0 ||
	    op_policy_set(r->cay, a.row.id, buf_str(&s.policy), &res, e) < 0)
		return -1;
	json_init(&j, &b);
	json_policy_set(&j, &res);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_policy_check(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(v1_spec_done) struct v1_spec s = { 0 };
	auto_done(policy_free) struct policy *p = NULL;
	struct json j;

	if (v1_ask_read(r, &a, e) < 0 || v1_policy_read(&a, a.in.body, &s, &p, e) < 0)
		return -1;
	json_init(&j, &b);
	json_policy_checked(&j, p);
	return v1_reply(r, 200, &j, &b, e);
}

/* ---- pools ---- */

/* The keeper's pid comes after the rows, so they are written twice: once to learn it. */
struct pools {
	struct json j;
	long keeper;
};

static int put_pool(void *ctx, const struct pool_item *item)
{
	struct pools *p = ctx;

	json_pool(&p->j, item, p->keeper);
	return 0;
}

static int skip_pool(void *ctx, const struct pool_item *item)
{
	(void)ctx;
	(void)item;
	return 0;
}

int v1_job_pools(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct pools p = { 0 };
	long keeper;

	if (v1_ask_read(r, &a, e) < 0 || op_pool_list(r->cay, skip_pool, NULL, &p.keeper, e) < 0)
		return -1;
	v1_list_begin(&p.j, &b);
	if (op_pool_list(r->cay, put_pool, &p, &keeper, e) < 0)
		return -1;
	return v1_list_end(r, &p.j, &b, NULL, e);
}

int v1_job_pool_set(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(v1_spec_done) struct v1_spec s = { 0 };
	struct pool_spec spec = { 0 };

	if (v1_ask_read(r, &a, e) < 0 || v1_spec_read(r, &a, a.in.body, &s, e) < 0)
		return -1;
	spec = (struct pool_spec){ .of = s.spec,
				   .wanted = (uint32_t)v1_number(a.in.body, "wanted"),
				   .wait = v1_is(a.in.body, "wait") };
	return op_pool_set(r->cay, &spec, e) < 0 ? -1 : v1_reply_empty(r, 204, e);
}

/* ---- the host ---- */

int v1_job_gc(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct gc_spec spec = { 0 };
	struct gc_result res;
	struct json j;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	spec.lost = v1_is(a.in.body, "lost");
	if (op_gc(r->cay, &spec, &res, e) < 0)
		return -1;
	json_init(&j, &b);
	json_gc(&j, &res);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_doctor(struct job_run *r, struct err *e)
{
	/* Static because they are large; a worker does one job at a time. */
	static struct doctor_facts facts;
	static struct checks checks;
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	struct level levels[LEVELS_MAX];
	struct json j;

	memset(&facts, 0, sizeof facts);
	memset(&checks, 0, sizeof checks);
	doctor_gather(&facts);
	doctor_checks(&facts, &checks);
	json_init(&j, &b);
	json_doctor(&j, &checks, levels, doctor_levels(&facts, &checks, levels));
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_version(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct json j;

	json_init(&j, &b);
	json_version(&j);
	return v1_reply(r, 200, &j, &b, e);
}

/* ---- keys ---- */

static int put_key(void *ctx, const struct key_row *row)
{
	json_put_key(ctx, row, NULL);
	return 0;
}

int v1_job_keys(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	struct json j;

	v1_list_begin(&j, &b);
	if (op_key_list(r->cay, put_key, &j, e) < 0)
		return -1;
	return v1_list_end(r, &j, &b, NULL, e);
}

int v1_job_key_create(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct key_spec spec = { 0 };
	struct key_row row;
	char text[KEY_TEXT];
	struct json j;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	spec.name = v1_text(a.in.body, "name");
	if (op_key_create(r->cay, &spec, text, &row, e) < 0)
		return -1;
	json_init(&j, &b);
	json_put_key(&j, &row, text);
	return v1_reply(r, 201, &j, &b, e);
}

int v1_job_key_revoke(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct key_row row;

	if (v1_ask_read(r, &a, e) < 0 || op_key_revoke(r->cay, a.in.id, &row, e) < 0)
		return -1;
	return v1_reply_empty(r, 204, e);
}
