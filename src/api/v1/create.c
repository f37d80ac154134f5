/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes. With the client's key a repeated request answers with the same sandboxes. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "api/answer.h"
#include "api/v1/work.h"
#include "base/clock.h"
#include "ops/json.h"
#include "store/requests.h"

enum { LOOK_MS = 10 };

/* A request to create, and what it made. */
struct making {
	const struct v1_ask *a;
	size_t asked, n; /* asked 0: one, and the answer is no list */
	struct request_key keys[CREATE_MOST];
	struct created made[CREATE_MOST];
	bool replayed;
};

static int reply_made(struct job_run *r, struct making *m, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	struct api_answer answer = { .status = 201, .replayed = m->replayed };
	struct json j;

	json_init(&j, &b);
	if (m->asked) {
		json_obj(&j);
		json_put_arr(&j, "items");
	}
	for (size_t i = 0; i < m->n; i++)
		json_created(&j, &m->made[i]);
	if (m->asked) {
		json_end(&j);
		json_put_nil(&j, "next");
		json_end(&j);
	}
	answer.body = buf_str(&b);
	if (json_done(&j) < 0 || api_answer_put(r->out, &answer) < 0)
		return err_set(e, ERR_FAILED, "the answer is too long");
	return 0;
}

/* ---- keys ---- */

static int hash_body(const struct v1_ask *a, uint8_t hash[SHA256_SIZE], struct err *e)
{
	auto_free char *text =
		a->in.body ? json_dumps(a->in.body, JSON_COMPACT | JSON_SORT_KEYS) : strdup("");

	if (!text)
		return err_sys(e, ENOMEM, "create a sandbox");
	sha256(text, strlen(text), hash);
	return 0;
}

/* Wait for a sandbox that another worker makes. 1: it runs, 0: it is gone. */
static int await_made(struct job_run *r, const char *id, struct created *ret, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * NS_PER_MS };

	for (;;) {
		auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
		struct err gone = { 0 };

		if (catalog_find(r->cay->catalog, id, &row, &gone) < 0)
			return gone.kind == ERR_NOT_FOUND ? 0 : (*e = gone, -1);
		*ret = (struct created){ .created_ns = row.created_ns };
		(void)str_copy(ret->id, sizeof ret->id, str_of(row.id));
		(void)str_copy(ret->name, sizeof ret->name, str_of(row.name));
		(void)str_copy(ret->template_, sizeof ret->template_, str_of(row.template_));
		if (strcmp(row.state, "creating") != 0)
			return 1;
		if (clock_mono_ns() > r->cay->wait.deadline_ns)
			return err_set(e, ERR_TIMEOUT, "sandbox '%s' is still being made", id);
		(void)nanosleep(&pause, NULL);
	}
}

/* What an earlier request with this key made. 1: m has it, 0: nothing. */
static int find_earlier(struct job_run *r, struct making *m, struct err *e)
{
	char ids[CREATE_MOST][ID_SIZE];
	uint8_t hash[SHA256_SIZE];
	int n, k;

	if (cay_catalog(r->cay, e) < 0)
		return -1;
	n = catalog_find_request(r->cay->catalog, m->a->in.owner ? m->a->in.owner : "", m->a->key,
				 ids, CREATE_MOST, hash, e);
	if (n <= 0)
		return n;
	if (memcmp(hash, m->keys[0].hash, sizeof hash) != 0) {
		(void)err_set(e, ERR_INVALID, "this Idempotency-Key was used for another request");
		return err_code(e, "idempotency.mismatch", NULL);
	}
	for (int i = 0; i < n; i++) {
		k = await_made(r, ids[i], &m->made[i], e);
		if (k <= 0)
			return k;
	}
	m->n = (size_t)n;
	m->replayed = true;
	return 1;
}

static int make(struct job_run *r, struct making *m, const struct create_spec *spec, struct err *e)
{
	auto_free struct create_spec *specs = calloc(m->n, sizeof *specs);

	if (!specs)
		return err_sys(e, ENOMEM, "make sandboxes");
	for (size_t i = 0; i < m->n; i++) {
		specs[i] = *spec;
		specs[i].request = m->a->key ? &m->keys[i] : NULL;
	}
	if (op_create(r->cay, specs, m->n, m->made, e) < 0)
		return v1_hide_taken(m->a, spec->name, e);
	return 0;
}

/* Two requests with one key may meet: the second then finds what the first made. */
static int make_once(struct job_run *r, struct making *m, const struct create_spec *spec,
		     struct err *e)
{
	struct err taken = { 0 };
	int k = m->a->key ? find_earlier(r, m, e) : 0;

	if (k != 0)
		return k < 0 ? -1 : 0;
	if (make(r, m, spec, &taken) == 0)
		return 0;
	if (strcmp(taken.code, "idempotency.taken") == 0)
		k = find_earlier(r, m, e);
	if (k == 0)
		*e = taken;
	return k > 0 ? 0 : -1;
}

static int prepare(struct making *m, const struct create_spec *spec, struct err *e)
{
	uint8_t hash[SHA256_SIZE];

	m->asked = v1_number(m->a->in.body, "count");
	m->n = m->asked ? m->asked : 1;
	if (m->n > 1 && spec->name) {
		(void)err_set(e, ERR_INVALID, "several sandboxes cannot have one name");
		return err_field(e, "name");
	}
	if (m->a->key && (!m->a->key[0] || strlen(m->a->key) >= REQUEST_KEY)) {
		(void)err_set(e, ERR_INVALID, "Idempotency-Key must have 1 to %d characters",
			      REQUEST_KEY - 1);
		return err_field(e, "Idempotency-Key");
	}
	if (hash_body(m->a, hash, e) < 0)
		return -1;
	for (int i = 0; i < CREATE_MOST; i++) {
		m->keys[i] = (struct request_key){ .key = m->a->key, .n = i };
		memcpy(m->keys[i].hash, hash, sizeof hash);
	}
	return 0;
}

int v1_job_create(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(v1_spec_done) struct v1_spec s = { 0 };
	auto_free struct making *m = calloc(1, sizeof *m);

	if (!m)
		return err_sys(e, ENOMEM, "make sandboxes");
	if (v1_ask_read(r, &a, e) < 0 || v1_spec_read(r, &a, a.in.body, &s, e) < 0)
		return -1;
	m->a = &a;
	if (prepare(m, &s.spec, e) < 0 || make_once(r, m, &s.spec, e) < 0)
		return -1;
	return reply_made(r, m, e);
}
