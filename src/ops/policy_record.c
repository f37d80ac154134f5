/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/policy_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/sha256.h"
#include "ops/trace_open.h"
#include "policy/describe.h"
#include "trace/read.h"

void policy_record_done(struct policy_record *r)
{
	policy_free(r->now);
	json_decref(r->history);
	*r = (struct policy_record){ 0 };
}

/* The warden writes the file once the gateway enforces the policy. */
int policy_record_now(struct cay *c, const char *id, struct policy_record *r, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY);
	auto_close int dir = FD_NONE;
	struct err missing = { 0 };
	uint8_t hash[SHA256_SIZE];
	int n;

	if (state_sandbox_open(&c->state, id, &dir, &missing) < 0)
		return 0;
	n = io_read_file(dir, "policy", &text);
	if (n == -ENOENT)
		return 0;
	if (n == 0)
		n = policy_decode(buf_str(&text), &r->now);
	if (n < 0)
		return err_sys(e, -n, "read the policy of sandbox '%s'", id);
	sha256(text.data, text.len, hash);
	sha256_hex(hash, r->hash);
	return 0;
}

static int keep_event(struct policy_record *r, struct str line, struct err *e)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	struct err damaged = { 0 };

	if (trace_event_parse(line, &ev, &damaged) < 0)
		return 0;
	if (!r->history)
		r->history = json_array();
	if (json_array_append(r->history, ev.json) < 0)
		return err_sys(e, ENOMEM, "read the trace of '%s'", r->id);
	return 0;
}

static int read_history(struct trace_found *f, struct policy_record *r, struct err *e)
{
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct str line, kind;
	uint32_t call;
	int n;

	trace_open_lines(f, &lines);
	r->cut = f->cut;
	while ((n = trace_lines_next(&lines, &line)) > 0)
		if (trace_event_glance(line, &kind, &call) && str_is(kind, "policy.set") &&
		    keep_event(r, line, e) < 0)
			return -1;
	return n < 0 && n != -E2BIG ? err_sys(e, -n, "read the trace of '%s'", r->id) : 0;
}

int op_policy_record(struct cay *c, const char *ref, struct policy_record *ret, struct err *e)
{
	auto_done(policy_record_done) struct policy_record r = { 0 };
	auto_done(trace_open_done) struct trace_found f = { .fd = FD_NONE };

	if (op_trace_open(c, ref, &f, e) < 0)
		return -1;
	(void)str_copy(r.id, sizeof r.id, str_of(f.id));
	if (policy_record_now(c, r.id, &r, e) < 0 || read_history(&f, &r, e) < 0)
		return -1;
	*ret = r;
	r = (struct policy_record){ 0 };
	return 0;
}

static void put_rules(struct json *j, const struct policy *p)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY_DESCRIBED);

	json_put_arr(j, "rules");
	for (size_t i = 0; i < p->nrules; i++) {
		buf_clear(&text);
		if (policy_describe_rule(&p->rules[i], &text) == 0)
			json_str(j, buf_str(&text));
	}
	json_end(j);
}

static void put_history(struct json *j, const json_t *history)
{
	auto_free char *text = history ? json_dumps(history, JSON_COMPACT) : NULL;

	json_put_raw(j, "history", text ? str_of(text) : STR("[]"));
}

void json_policy_record(struct json *j, const struct policy_record *r)
{
	json_obj(j);
	json_put_c(j, "sandbox", r->id);
	if (r->now) {
		json_put_str(j, "policy", r->now->name);
		json_put_c(j, "default", r->now->def == POLICY_ACT_ALLOW ? "allow" : "deny");
		json_put_c(j, "hash", r->hash);
		put_rules(j, r->now);
	} else {
		json_put_nil(j, "policy");
	}
	put_history(j, r->history);
	json_put_bool(j, "history_cut", r->cut);
	json_end(j);
}
