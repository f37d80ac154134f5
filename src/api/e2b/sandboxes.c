/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/sandboxes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/e2b/common.h"
#include "api/e2b/network.h"
#include "api/server_key.h"
#include "base/clock.h"
#include "ops/destroy.h"
#include "ops/job/handover.h"
#include "ops/order.h"
#include "ops/policy.h"
#include "policy/policy.h"
#include "store/key_limits.h"

static void put_lifecycle(struct json *j, const struct sandbox_row *row)
{
	auto_done(options_free) json_t *options = options_load(row);
	const json_t *limits = json_object_get(options, "limits");
	bool pauses = json_integer_value(json_object_get(limits, "pauses")) != 0;

	json_put_obj(j, "lifecycle");
	json_put_c(j, "onTimeout", pauses ? "pause" : "kill");
	json_put_bool(j, "autoResume", e2b_resumes(row));
	json_end(j);
	json_put_obj(j, "network");
	json_put_bool(j, "allowPublicTraffic", !e2b_is_private(row));
	json_end(j);
}

int e2b_info(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	auto_done(policy_record_done) struct policy_record net = { 0 };
	struct sandbox_status status;
	char token[TOKEN_SIZE];
	struct json j;

	if (e2b_about_read(r, &a, e) < 0 || e2b_status(r, a.row.id, &status, e) < 0 ||
	    policy_record_now(r->cay, a.row.id, &net, e) < 0)
		return -1;
	server_token(r->ctx, "envd", a.row.id, token);
	json_init(&j, &b);
	json_obj(&j);
	e2b_put_listed(&j, &a.row, &status);
	/* The token opens commands and files. */
	if (a.ask.scope & SCOPE_USE)
		json_put_c(&j, "envdAccessToken", token);
	e2b_put_domain(&j);
	put_lifecycle(&j, &a.row);
	json_put_bool(&j, "allowInternetAccess", net.now && net.now->def == POLICY_ACT_ALLOW);
	json_end(&j);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, 200, &b, e);
}

int e2b_kill(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };

	if (e2b_about_read(r, &a, e) < 0 || op_destroy(r->cay, a.row.id, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

int e2b_timeout(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct order_result res;
	int64_t seconds = -1;

	if (e2b_about_read(r, &a, e) < 0 ||
	    field_number(a.ask.body, "timeout", 0, E2B_TIMEOUT_MOST_S, &seconds, e) < 0)
		return -1;
	if (seconds < 0)
		return err_set(e, ERR_INVALID, "timeout is missing");
	/* 0 would mean without an end. */
	if (e2b_order(r, a.row.id, LINK_EXTEND, seconds ? (uint64_t)seconds * 1000 : 1, &res, e) <
	    0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

/* Only ever later. */
static int extend_to(struct job_run *r, const char *id, int64_t seconds,
		     const struct sandbox_status *now, struct err *e)
{
	uint64_t at_ms = clock_real_ns() / NS_PER_MS + (uint64_t)seconds * 1000;
	struct order_result res;

	if (!now->expires_at_ms || now->expires_at_ms >= at_ms)
		return 0;
	return e2b_order(r, id, LINK_EXPIRE_AT, at_ms, &res, e);
}

int e2b_refresh(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct sandbox_status status;
	int64_t seconds = E2B_TIMEOUT_S;

	if (e2b_about_read(r, &a, e) < 0 ||
	    field_number(a.ask.body, "duration", 0, 3600, &seconds, e) < 0 ||
	    e2b_status(r, a.row.id, &status, e) < 0 ||
	    extend_to(r, a.row.id, seconds, &status, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

static bool is_paused(const struct sandbox_status *s)
{
	return strcmp(s->state, "paused") == 0;
}

int e2b_pause(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct sandbox_status status;
	struct order_result res;
	bool memory = true;

	if (e2b_about_read(r, &a, e) < 0 || field_bool(a.ask.body, "memory", &memory, e) < 0 ||
	    e2b_status(r, a.row.id, &status, e) < 0)
		return -1;
	if (!memory)
		return err_set(e, ERR_INVALID, "pausing without the memory is not supported");
	if (is_paused(&status)) {
		(void)err_set(e, ERR_CONFLICT, "sandbox '%s' is paused already", a.row.id);
		return err_code(e, "sandbox.paused", NULL);
	}
	if (e2b_order(r, a.row.id, LINK_PAUSE, 0, &res, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

/* Runs afterwards. *ret: whether it was paused. */
static int wake(struct job_run *r, const struct e2b_about *a, bool *ret, struct err *e)
{
	struct sandbox_status status;
	struct order_result res;
	int64_t seconds = E2B_TIMEOUT_S;

	if (field_number(a->ask.body, "timeout", 0, E2B_TIMEOUT_MOST_S, &seconds, e) < 0 ||
	    e2b_status(r, a->row.id, &status, e) < 0)
		return -1;
	*ret = is_paused(&status);
	if (*ret && e2b_order(r, a->row.id, LINK_RESUME, 0, &res, e) < 0)
		return -1;
	if (*ret)
		status = res.state;
	return extend_to(r, a->row.id, seconds, &status, e);
}

int e2b_connect(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	bool was_paused;

	if (e2b_about_read(r, &a, e) < 0 || wake(r, &a, &was_paused, e) < 0)
		return -1;
	return e2b_answer_sandbox(r, was_paused ? 201 : 200, a.row.id,
				  e2b_template_theirs(a.row.template_), e2b_is_private(&a.row), e);
}

int e2b_wake(struct job_run *r, struct err *e)
{
	struct e2b_about a = { .ask.id = r->key };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct sandbox_status status;
	struct order_result res;
	auto_done(options_free) json_t *options = NULL;
	int64_t ms;

	if (e2b_find(r, &a.ask, &row, e) < 0 || e2b_status(r, row.id, &status, e) < 0)
		return -1;
	if (!is_paused(&status))
		return 0;
	options = options_load(&row);
	ms = json_integer_value(json_object_get(json_object_get(options, "limits"), "ttl_ms"));
	if (e2b_order(r, row.id, LINK_RESUME, 0, &res, e) < 0)
		return -1;
	return extend_to(r, row.id, ms > 0 ? ms / 1000 : E2B_TIMEOUT_S, &res.state, e);
}

int e2b_resume(struct job_run *r, struct err *e)
{
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct sandbox_status status;
	bool was_paused;

	if (e2b_about_read(r, &a, e) < 0 || e2b_status(r, a.row.id, &status, e) < 0)
		return -1;
	if (!is_paused(&status))
		return err_set(e, ERR_CONFLICT, "sandbox '%s' is running already", a.row.id);
	if (wake(r, &a, &was_paused, e) < 0)
		return -1;
	return e2b_answer_sandbox(r, 201, a.row.id, e2b_template_theirs(a.row.template_),
				  e2b_is_private(&a.row), e);
}

int e2b_network(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf policy = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_set_result_done) struct policy_set_result changed = { 0 };
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	struct e2b_network net = { .internet = true };

	if (e2b_about_read(r, &a, e) < 0 || e2b_network_read(a.ask.body, false, &net, e) < 0 ||
	    e2b_network_compile(&net, &policy, e) < 0 ||
	    op_policy_set(r->cay, a.row.id, buf_str(&policy), &changed, e) < 0)
		return -1;
	return e2b_answer_empty(r, 204, e);
}

int e2b_link(struct job_run *r, struct err *e)
{
	const struct e2b_ask ask = { .id = r->key };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	char more[ID_SIZE + 2];

	if (e2b_find(r, &ask, &row, e) < 0)
		return -1;
	/* The front ends what it has open for a key that is revoked, asks for the token, and wakes
	 * it when it is used. */
	(void)snprintf(more, sizeof more, "%s%s%s", row.owner, e2b_resumes(&row) ? "~" : "",
		       e2b_is_private(&row) ? "+" : "");
	return job_give_link(r, row.id, str_of(more), e);
}
