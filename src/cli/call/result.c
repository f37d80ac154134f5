/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/result.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/number.h"
#include "cli/output.h"
#include "link/decode.h"
#include "ops/json.h"

enum { SHOWN = 3, KILLED = 128 + 9 };

static void say_denied(const struct call_denied *d)
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
	struct call_denied d;

	denied_read(fields, &d);
	if (o->told++ < SHOWN)
		say_denied(&d);
}

/* The warden lists refusals in the order in which they happened: the last ones were told. */
static void explain_denied(const struct call_outcome *o)
{
	struct str fields = buf_str(&o->denied);
	int n = 0, shown = o->told < SHOWN ? o->told : SHOWN;
	struct call_denied d;

	while (denied_next(&fields, &d))
		n++;
	fields = buf_str(&o->denied);
	for (int i = o->told; i < n && shown < SHOWN && denied_next(&fields, &d); i++, shown++)
		say_denied(&d);
	if (n > shown)
		fprintf(stderr, "cay: refused: %d more; cay trace --kind net shows all\n",
			n - shown);
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
			call_limit_name(r), number_size(r->oom_limit, size));
	explain_denied(o);
}

void result_json(const struct call_outcome *o)
{
	struct json_line j;

	json_line_begin(&j);
	json_obj(&j.json);
	json_call_result(&j.json, &o->result, buf_str(&o->denied));
	json_end(&j.json);
	json_line_print_to(&j, stderr);
}
