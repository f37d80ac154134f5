/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/answer.h"
#include "api/e2b/network.h"
#include "api/server_key.h"
#include "base/clock.h"
#include "store/dead.h"
#include "store/key_limits.h"

/* A sandbox without an end has one that is far away: clients demand a time. */
#define FAR_AWAY "9999-12-31T23:59:59.000000Z"

int e2b_ask_read(struct job_run *r, struct e2b_ask *ret, struct err *e)
{
	json_t *all = json_load_object(r->in);

	if (!all)
		return err_set(e, ERR_INVALID, "the request is malformed");
	*ret = (struct e2b_ask){ .all = all,
				 .owner = json_string_value(json_object_get(all, "owner")),
				 .id = json_string_value(json_object_get(all, "id")),
				 .query = json_object_get(all, "query"),
				 .body = json_object_get(all, "body") };
	if (!ret->id)
		ret->id = "";
	ret->scope = ret->owner ? (unsigned)json_integer_value(json_object_get(all, "scope"))
				: SCOPE_ALL;
	return 0;
}

const char *e2b_query(const struct e2b_ask *a, const char *key)
{
	return json_string_value(json_object_get(a->query, key));
}

static int not_found(const char *id, struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, "sandbox '%.64s' not found", id);
	return err_code(e, "sandbox.unknown", NULL);
}

int e2b_find(struct job_run *r, const struct e2b_ask *a, struct sandbox_row *ret, struct err *e)
{
	struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	/* Whole ids only: names and prefixes are for people. */
	if (!state_id_ok(a->id))
		return not_found(a->id, e);
	if (cay_catalog(r->cay, e) < 0)
		return -1;
	/* One lookup, whosever it is: a search for similar names would cost much and tell others.
	 */
	if (a->owner ? catalog_get_sandbox(r->cay->catalog, a->id, &row, &ignored) <= 0
		     : catalog_find(r->cay->catalog, a->id, &row, &ignored) < 0)
		return not_found(a->id, e);
	if (strcmp(row.id, a->id) != 0 || (a->owner && strcmp(a->owner, row.owner) != 0) ||
	    !state_is_alive(&r->cay->state, row.id)) {
		sandbox_row_done(&row);
		return not_found(a->id, e);
	}
	*ret = row;
	return 0;
}

int e2b_about_read(struct job_run *r, struct e2b_about *ret, struct err *e)
{
	return e2b_ask_read(r, &ret->ask, e) < 0 ? -1 : e2b_find(r, &ret->ask, &ret->row, e);
}

void e2b_about_done(struct e2b_about *a)
{
	e2b_ask_done(&a->ask);
	sandbox_row_done(&a->row);
}

int e2b_order(struct job_run *r, const char *id, enum link_order what, uint64_t ms,
	      struct order_result *ret, struct err *e)
{
	const struct order_spec spec = { .ref = id, .order = what, .ms = ms };

	return op_order(r->cay, &spec, ret, e);
}

int e2b_status(struct job_run *r, const char *id, struct sandbox_status *ret, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;

	if (link_connect(&r->cay->wait, &r->cay->state, id, &l, e) < 0 ||
	    link_info(l, &r->cay->wait, ret, e) < 0)
		return state_is_alive(&r->cay->state, id) ? -1 : not_found(id, e);
	return 0;
}

int e2b_answer(struct job_run *r, int status, const struct buf *body, struct err *e)
{
	const struct api_answer a = { .status = status, .body = buf_str(body) };

	return api_answer_put(r->out, &a) < 0 ? err_set(e, ERR_FAILED, "the answer is too long")
					      : 0;
}

int e2b_answer_empty(struct job_run *r, int status, struct err *e)
{
	return e2b_answer(r, status, &(struct buf){ 0 }, e);
}

void e2b_put_domain(struct json *j)
{
	json_put_c(j, "domain", getenv("CAY_SERVE_DOMAIN"));
}

void e2b_put_sandbox(struct json *j, const struct job_run *r, const char *id, const char *template_,
		     bool is_private)
{
	char token[TOKEN_SIZE];

	server_token(r->ctx, "envd", id, token);
	json_obj(j);
	json_put_c(j, "sandboxID", id);
	json_put_c(j, "templateID", template_);
	json_put_c(j, "alias", template_);
	json_put_c(j, "clientID", "cay");
	json_put_c(j, "envdVersion", E2B_ENVD_VERSION);
	json_put_c(j, "envdAccessToken", token);
	server_token(r->ctx, "traffic", id, token);
	json_put_c(j, "trafficAccessToken", is_private ? token : NULL);
	e2b_put_domain(j);
	json_end(j);
}

int e2b_answer_sandbox(struct job_run *r, int status, const char *id, const char *template_,
		       bool is_private, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct json j;

	json_init(&j, &b);
	e2b_put_sandbox(&j, r, id, template_, is_private);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, status, &b, e);
}

static void put_resources(struct json *j, const json_t *options)
{
	const json_t *limits = json_object_get(options, "limits");
	int64_t cpu = json_integer_value(json_object_get(limits, "cpu_milli"));
	int64_t memory = json_integer_value(json_object_get(limits, "memory"));
	int64_t disk = json_integer_value(json_object_get(limits, "disk"));
	int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

	/* Without a limit it is the whole machine. */
	json_put_i64(j, "cpuCount", cpu ? (cpu + 999) / 1000 : sysconf(_SC_NPROCESSORS_ONLN));
	json_put_i64(j, "memoryMB", (memory ? memory : all) >> 20);
	json_put_i64(j, "diskSizeMB", disk >> 20);
}

static void put_labels(struct json *j, const json_t *options)
{
	json_t *labels = json_object_get(options, "labels"), *value;
	const char *key;

	json_put_obj(j, "metadata");
	json_object_foreach(labels, key, value)
	{
		const char *text = options_text(value, NULL);

		if (strcmp(key, E2B_PRIVATE_KEY) != 0 && strcmp(key, E2B_RESUME_KEY) != 0)
			json_put_c(j, key, text ? text : "");
	}
	json_end(j);
}

void e2b_put_listed(struct json *j, const struct sandbox_row *row,
		    const struct sandbox_status *status)
{
	auto_done(options_free) json_t *options = options_load(row);
	char start[CLOCK_TEXT_SIZE], end[CLOCK_TEXT_SIZE] = FAR_AWAY;

	clock_text(row->created_ns, start);
	if (status->expires_at_ms)
		clock_text(status->expires_at_ms * NS_PER_MS, end);
	json_put_c(j, "sandboxID", row->id);
	json_put_c(j, "templateID", e2b_template_theirs(row->template_));
	json_put_c(j, "alias", e2b_template_theirs(row->template_));
	json_put_c(j, "clientID", "cay");
	json_put_c(j, "startedAt", start);
	json_put_c(j, "endAt", end);
	json_put_c(j, "state", strcmp(status->state, "paused") == 0 ? "paused" : "running");
	put_resources(j, options);
	json_put_c(j, "envdVersion", E2B_ENVD_VERSION);
	put_labels(j, options);
}

static const struct {
	const char *theirs, *ours;
} templates[] = { { "base", "host" }, { "code-interpreter-v1", "host" } };

const char *e2b_template_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(templates); i++)
		if (strcmp(templates[i].theirs, name) == 0)
			return templates[i].ours;
	return NULL;
}

const char *e2b_template_theirs(const char *ours)
{
	for (size_t i = 0; i < ARRAY_LEN(templates); i++)
		if (strcmp(templates[i].ours, ours) == 0)
			return templates[i].theirs;
	return strncmp(ours, "snap:", 5) == 0 ? ours + 5 : ours;
}
