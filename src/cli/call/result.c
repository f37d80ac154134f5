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

static bool next_denied(struct str *fields, struct denied *d)
{
	struct field f, in;

	if (field_next(fields, &f) <= 0)
		return false;
	*d = (struct denied){ .count = 1 };
	while (field_next(&f.value, &in) > 0) {
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
	fprintf(stderr, " (%s; rule %s)", why, rule);
	if (*fix)
		fprintf(stderr, "; to allow it add to the policy: %s", fix);
	fputc('\n', stderr);
}

static const char *limit_name(const struct call_result *r)
{
	return r->oom_own ? "call-memory" : "memory";
}

void result_explain(const struct call_outcome *o)
{
	const struct call_result *r = &o->result;
	struct str fields = buf_str(&o->denied);
	char size[OUT_NUMBER];
	struct denied d;
	int n = 0;

	if (strcmp(r->reason, "disk") == 0)
		fprintf(stderr, "cay: the command %s: the sandbox wrote %s its --disk allows\n",
			r->code == KILLED ? "was killed" : "failed",
			r->code == KILLED ? "more than" : "as much as");
	if (r->oom_kills)
		fprintf(stderr, "cay: %s killed: out of memory (--%s %s)\n",
			strcmp(r->reason, "oom") == 0 ? "the command was" : "a process was",
			limit_name(r), number_size(r->oom_limit, size));
	while (next_denied(&fields, &d))
		if (n++ < SHOWN)
			say_denied(&d);
	if (n > SHOWN)
		fprintf(stderr, "cay: refused: %d more; cay trace --kind net shows all\n",
			n - SHOWN);
}

static void json_denied(struct out_json *j, const struct denied *d)
{
	out_json_open(j, NULL, '{');
	if (d->name.n)
		out_json_text(j, "name", d->name);
	if (d->address.n)
		out_json_text(j, "address", d->address);
	if (d->port)
		out_json_num(j, "port", (int64_t)d->port);
	out_json_text(j, "rule", d->rule);
	out_json_text(j, "reason", d->reason);
	out_json_text(j, "message", d->why);
	if (d->fix.n)
		out_json_text(j, "allow", d->fix);
	out_json_num(j, "count", (int64_t)d->count);
	out_json_close(j, '}');
}

void result_json(const struct call_outcome *o)
{
	const struct call_result *r = &o->result;
	struct out_json j = { .f = stderr };
	struct str fields = buf_str(&o->denied);
	struct denied d;

	out_json_open(&j, NULL, '{');
	out_json_num(&j, "call", r->call);
	out_json_num(&j, "exit_code", r->code);
	out_json_c(&j, "reason", r->reason);
	out_json_ms(&j, "duration_ms", r->duration_us);
	if (r->oom_kills) {
		out_json_num(&j, "oom_kills", (int64_t)r->oom_kills);
		out_json_c(&j, "oom_limit", limit_name(r));
		out_json_num(&j, "oom_bytes", (int64_t)r->oom_limit);
	}
	out_json_open(&j, "denied", '[');
	while (next_denied(&fields, &d))
		json_denied(&j, &d);
	out_json_close(&j, ']');
	out_json_close(&j, '}');
	out_json_line(&j);
}
