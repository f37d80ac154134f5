/* SPDX-License-Identifier: Apache-2.0 */
/* cay why: shows why a sandbox ended. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/sandbox/end_text.h"

enum { WHY_LABEL = 11 };

static void why_line(const char *label, const char *text)
{
	if (!text || !text[0])
		return;
	printf("%-*s", WHY_LABEL, label);
	out_safe(text);
	putchar('\n');
}

static void print_who(const struct trace_story *s)
{
	if (s->by_pid <= 0)
		return;
	printf("%-*s", WHY_LABEL, "by");
	out_safe(s->by[0] ? s->by : "a process");
	printf(" (pid %lld, uid %lld)\n", (long long)s->by_pid, (long long)s->by_uid);
}

static void print_files(const struct why_result *r)
{
	if (r->snapshot[0])
		printf("%-*s%s; go on with them: cay fork %s\n", WHY_LABEL, "files", r->snapshot,
		       r->row.id);
}

static void print_text(const struct why_result *r)
{
	const struct trace_story *s = &r->row.story;
	auto_free char *argv = s->argv ? argv_text(s->argv) : NULL;
	char call[96];

	why_line("id", r->row.id);
	why_line("name", s->name);
	if (strcmp(r->state, "running") == 0) {
		why_line("state", "it has not ended");
		return;
	}
	printf("%-*s%s: ", WHY_LABEL, r->state, r->row.cause);
	out_safe(r->row.reason);
	putchar('\n');
	print_who(s);
	why_line("log", r->row.log);
	why_line("created", s->created);
	why_line("last event", s->last);
	why_line("first call", argv);
	end_text_call(s, call, sizeof call);
	why_line("last call", call);
	print_files(r);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(why_result_done) struct why_result r = { 0 };

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_open_state(&c, e) < 0 ||
	    op_why(&c, ctx->args[0], &r, e) < 0)
		return -1;
	if (ctx->quiet)
		puts(strcmp(r.state, "running") == 0 ? r.state : r.row.cause);
	else if (ctx->json)
		PRINT_JSON(json_why, &r);
	else
		print_text(&r);
	return 0;
}

const struct cmd cmd_why = {
	.name = "why",
	.synopsis = "SANDBOX",
	.summary = "Show why a sandbox ended",
	.details =
		"The cause is one of: command (cay run: its command ended), killed (with the process "
		"that asked for it), ttl, idle, oom (init itself was killed), told (its warden got "
		"SIGTERM), creator (cay went away while it made the sandbox), failed (the reason "
		"says what broke), and lost (its warden died, or the machine was restarted). With "
		"-q only the cause.",
	.examples = "cay why work\ncay why k3x9abcdefgh --json",
	.run = run,
	.data = true,
	.complete = "sandbox",
};
