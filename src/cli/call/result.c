/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/result.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/number.h"
#include "cli/output.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { SHOWN = 3, KILLED = 128 + 9 };

struct denied {
	struct str name, address, rule, reason, why, fix;
	uint64_t port, count;
};

static void read_denied(struct str fields, struct denied *d)
{
	struct field in;

	*d = (struct denied){ .count = 1 };
	while (field_next(&fields, &in) > 0) {
		if (in.tag == TAG_PORT)
			(void)field_u64(in, &d->port);
		else if (in.tag == TAG_COUNT)
			(void)field_u64(in, &d->count);
		else if (in.tag == TAG_NAME)
			d->name = in.value;
		else if (in.tag == TAG_ADDRESS)
			d->address = in.value;
		else if (in.tag == TAG_RULE)
			d->rule = in.value;
		else if (in.tag == TAG_REASON)
			d->reason = in.value;
		else if (in.tag == TAG_TEXT)
			d->why = in.value;
		else if (in.tag == TAG_HINT)
			d->fix = in.value;
	}
}

static bool next_denied(struct str *fields, struct denied *d)
{
	struct field f;

	if (field_next(fields, &f) <= 0)
		return false;
	read_denied(f.value, d);
	return true;
}

static void say_denied(const struct denied *d)
{
	auto_free char *host = out_safe_dup(d->name.n ? d->name : d->address);
	auto_free char *why = out_safe_dup(d->why), *rule = out_safe_dup(d->rule);
	auto_free char *fix = out_safe_dup(d->fix);

	if (!host || !why || !rule || !fix)
		return;
	fprintf(stderr, "cay: refused: %s", host);
	if (d->port)
		fprintf(stderr, ":%u", (unsigned)d->port);
	fprintf(stderr, " (%s", why);
	if (*rule)
		fprintf(stderr, "; rule %s", rule);
	fputc(')', stderr);
	if (*fix) /* what no rule decides is an option of the sandbox */
		fprintf(stderr, "; to allow it %s%s",
			*rule ? "add to the policy: " : "make the sandbox with ", fix);
	fputc('\n', stderr);
}

void result_denied(struct call_outcome *o, struct str fields)
{
	struct denied d;

	read_denied(fields, &d);
	if (o->told++ < SHOWN)
		say_denied(&d);
}

/* The warden lists refusals in the order in which they happened: the last ones were told. */
static void explain_denied(const struct call_outcome *o)
{
	struct str fields = buf_str(&o->denied);
	int n = 0, shown = o->told < SHOWN ? o->told : SHOWN;
	struct denied d;

	while (next_denied(&fields, &d))
		n++;
	fields = buf_str(&o->denied);
	for (int i = o->told; i < n && shown < SHOWN && next_denied(&fields, &d); i++, shown++)
		say_denied(&d);
	if (n > shown)
		fprintf(stderr, "cay: refused: %d more; cay trace --kind net shows all\n",
			n - shown);
}

static const char *limit_name(const struct call_result *r)
{
	return r->oom_own ? "call-memory" : "memory";
}

void result_explain(const struct call_outcome *o)
{
	const struct call_result *r = &o->result;
	char size[OUT_NUMBER];

	if (strcmp(r->reason, "disk") == 0)
		fprintf(stderr, "cay: the command %s: the sandbox wrote %s its --disk allows\n",
			r->code == KILLED ? "was killed" : "failed",
			r->code == KILLED ? "more than" : "as much as");
	if (r->oom_kills)
		fprintf(stderr, "cay: %s killed: out of memory (--%s %s)\n",
			strcmp(r->reason, "oom") == 0 ? "the command was" : "a process was",
			limit_name(r), number_size(r->oom_limit, size));
	explain_denied(o);
}

static void json_denied(struct json *j, const struct denied *d)
{
	json_obj(j);
	if (d->name.n)
		json_put_str(j, "name", d->name);
	if (d->address.n)
		json_put_str(j, "address", d->address);
	if (d->port)
		json_put_i64(j, "port", (int64_t)d->port);
	if (d->rule.n)
		json_put_str(j, "rule", d->rule);
	json_put_str(j, "reason", d->reason);
	json_put_str(j, "message", d->why);
	if (d->fix.n)
		json_put_str(j, "allow", d->fix);
	json_put_i64(j, "count", (int64_t)d->count);
	json_end(j);
}

void result_json(const struct call_outcome *o)
{
	const struct call_result *r = &o->result;
	struct json_line j;
	struct str fields = buf_str(&o->denied);
	struct denied d;

	json_line_begin(&j);
	json_obj(&j.json);
	json_put_i64(&j.json, "call", r->call);
	json_put_i64(&j.json, "exit_code", r->code);
	json_put_text(&j.json, "reason", r->reason);
	json_put_ms(&j.json, "duration_ms", r->duration_us);
	if (r->oom_kills) {
		json_put_i64(&j.json, "oom_kills", (int64_t)r->oom_kills);
		json_put_text(&j.json, "oom_limit", limit_name(r));
		json_put_i64(&j.json, "oom_bytes", (int64_t)r->oom_limit);
	}
	json_put_arr(&j.json, "denied");
	while (next_denied(&fields, &d))
		json_denied(&j.json, &d);
	json_end(&j.json);
	json_end(&j.json);
	json_line_print_to(&j, stderr);
}
