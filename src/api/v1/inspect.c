/* SPDX-License-Identifier: Apache-2.0 */
/* What is going on in a sandbox, and what happened to those that ended. */
#include <errno.h>
#include <string.h>

#include "api/v1/work.h"
#include "ops/ended.h"
#include "ops/json.h"

enum { ENDED_PAGE = 100 };

static int put_call(void *ctx, const struct link_call_row *row)
{
	json_call(ctx, row);
	return 0;
}

int v1_job_calls(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0)
		return -1;
	v1_list_begin(&j, &b);
	if (op_calls(r->cay, a.row.id, put_call, &j, e) < 0)
		return -1;
	return v1_list_end(r, &j, &b, NULL, e);
}

/* By our number, or by the caller's id. */
int v1_job_call(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(link_free) struct link *l = NULL;
	struct link_call_row row;
	struct json j;
	unsigned long n = 0;

	if (v1_about(r, &a, e) < 0)
		return -1;
	if (!a.sub[strspn(a.sub, "0123456789")])
		n = strtoul(a.sub, NULL, 10);
	if (n > UINT32_MAX)
		return v1_unknown("call", "call.not_found", a.sub, e);
	if (link_connect(&r->cay->wait, &r->cay->state, a.row.id, &l, e) < 0 ||
	    link_call_find(l, &r->cay->wait, (uint32_t)n, a.sub, &row, e) < 0)
		return -1;
	json_init(&j, &b);
	json_call(&j, &row);
	return v1_reply(r, 200, &j, &b, e);
}

static int put_process(void *ctx, const struct link_process *p)
{
	json_process(ctx, p);
	return 0;
}

int v1_job_ps(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0)
		return -1;
	v1_list_begin(&j, &b);
	if (op_ps(r->cay, a.row.id, put_process, &j, e) < 0)
		return -1;
	return v1_list_end(r, &j, &b, NULL, e);
}

int v1_job_net(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(net_result_done) struct net_result res = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0 ||
	    op_net(r->cay, a.row.id, v1_is(a.in.query, "by_call"), &res, e) < 0)
		return -1;
	v1_list_begin(&j, &b);
	for (int i = 0; i < res.n; i++)
		json_net_row(&j, &res.rows[i], res.by_call);
	return v1_list_end(r, &j, &b, NULL, e);
}

/* Ended sandboxes have no owner any more: only the host's user may ask about them. */
int v1_job_why(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(why_result_done) struct why_result res = { 0 };
	const char *ref;
	struct json j;
	int k;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	k = v1_find_sandbox(r, &a, a.in.id, &a.row, e);
	if (k < 0 && (a.in.owner || e->kind != ERR_NOT_FOUND))
		return -1;
	ref = k < 0 ? a.in.id : a.row.id;
	if (op_why(r->cay, ref, &res, e) < 0)
		return -1;
	json_init(&j, &b);
	json_why(&j, &res);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_ended(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(ended_list_done) struct ended_list l = { 0 };
	uint64_t limit;
	struct json j;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	limit = v1_number(a.in.query, "limit");
	if (op_ended(r->cay, limit ? (int)limit : ENDED_PAGE, &l, e) < 0)
		return -1;
	v1_list_begin(&j, &b);
	for (int i = 0; i < l.n; i++)
		json_ended(&j, &l.rows[i]);
	return v1_list_end(r, &j, &b, NULL, e);
}
