/* SPDX-License-Identifier: Apache-2.0 */
/* cay logs and cay attach: show or join a detached call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/call/command_line.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "ops/connect.h"

static bool follow, no_stdin, json;
static struct opt logs_opts[] = {
	{ "follow", 'f', OPT_FLAG, NULL, "Go on until the call has ended", &follow },
	{ 0 },
};
static struct opt attach_opts[] = {
	{ "no-stdin", 0, OPT_FLAG, NULL, "Send it no input", &no_stdin },
	{ "json", 0, OPT_FLAG, NULL, "When it has ended, print how on stderr as one line of JSON",
	  &json },
	{ 0 },
};

struct view {
	struct link *link;
	struct link_call_row row;
	uint64_t left; /* bytes still to show; UINT64_MAX: everything */
};

/* A number is our call number; any other text is the caller's own id. */
static int find_call(struct cay *c, struct link *l, const char *text, struct link_call_row *ret,
		     struct err *e)
{
	bool number = text[0] && strspn(text, "0123456789") == strlen(text);
	unsigned long n = number ? strtoul(text, NULL, 10) : 0;

	if (number && (n == 0 || n > UINT32_MAX))
		return err_set(e, ERR_NOT_FOUND, "there is no call '%s'", text);
	if (link_call_find(l, &c->wait, (uint32_t)n, text, ret, e) == 0)
		return 0;
	if (strcmp(e->code, "call.not_found") == 0) {
		(void)err_set(e, ERR_NOT_FOUND, "there is no call '%s' in sandbox '%s'", text,
			      link_id(l));
		return err_code(e, "call.not_found", link_id(l));
	}
	return -1;
}

static int open_view(struct cmd_ctx *ctx, struct cay *c, struct view *v, struct err *e)
{
	if (cmd_need_args(ctx, 2, 2, "a SANDBOX and a CALL", e) < 0 || cli_open_state(c, e) < 0 ||
	    op_connect(c, ctx->args[0], &v->link, e) < 0 ||
	    find_call(c, v->link, ctx->args[1], &v->row, e) < 0)
		return -1;
	cli_let_go(c);
	if (v->row.detached)
		return 0;
	(void)err_set(e, ERR_CONFLICT, "call %u is not detached: its output went to its own client",
		      v->row.call);
	return err_code(e, "call.not_detached", NULL);
}

/* True: there is nothing to wait for. */
static bool on_started(void *ctx, const struct call_started *s)
{
	struct view *v = ctx;

	if (s->dropped)
		fprintf(stderr, "cay: the first %" PRIu64 " bytes are not kept any more\n",
			s->dropped);
	if (v->left != UINT64_MAX)
		v->left = v->row.kept_to > s->offset ? v->row.kept_to - s->offset : 0;
	return v->left == 0;
}

static bool on_bytes(void *ctx, size_t bytes)
{
	struct view *v = ctx;

	if (v->left == UINT64_MAX)
		return false;
	v->left -= bytes < v->left ? bytes : v->left;
	return v->left == 0;
}

static int view(struct view *v, struct call_stdio *s, bool writes, struct call_outcome *outcome,
		struct err *e)
{
	const struct call_attach how = { .call = v->row.call, .writes = writes };

	s->link = v->link;
	s->out_fd = STDOUT_FILENO;
	s->err_fd = STDERR_FILENO;
	s->started = on_started;
	s->enough = on_bytes;
	s->ctx = v;
	return call_stdio_attach(s, &how, outcome, e);
}

static void view_done(struct view *v)
{
	link_free(v->link);
}
DEFINE_AUTO(struct view, view_done)

static int run_logs(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(view_done) struct view v = { 0 };
	auto_done(call_outcome_done) struct call_outcome outcome = CALL_OUTCOME_INIT;
	struct call_stdio s = { .in_fd = FD_NONE };

	if (open_view(ctx, &c, &v, e) < 0)
		return -1;
	v.left = follow ? UINT64_MAX : v.row.kept_to;
	if (view(&v, &s, false, &outcome, e) == 0)
		return 0;
	/* The log already says why the command did not start. */
	if (v.row.failed)
		return err_ctx(e, "call %u", v.row.call);
	return -1;
}

static int run_attach(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(view_done) struct view v = { .left = UINT64_MAX };
	auto_done(call_outcome_done) struct call_outcome outcome = CALL_OUTCOME_INIT;
	struct call_stdio s = { .in_fd = STDIN_FILENO, .signals = true };

	if (open_view(ctx, &c, &v, e) < 0)
		return -1;
	s.leaves = s.tty = v.row.tty && !no_stdin && isatty(STDIN_FILENO);
	if (view(&v, &s, !no_stdin, &outcome, e) < 0)
		return -1;
	if (!outcome.left)
		return command_exit(&outcome, json);
	fprintf(stderr, "\ncay: call %u goes on\n", v.row.call);
	return 0;
}

const struct cmd cmd_logs = {
	.name = "logs",
	.synopsis = "[-f] SANDBOX CALL",
	.summary = "Print the output of a detached call",
	.details = "CALL is the number that cay exec --detach printed, or the --call-id. The last "
		   "1 MiB of output is kept, also when the call has ended, for the last 64 "
		   "detached calls. stdout and stderr stay apart. Interrupting cay logs does not "
		   "touch the call.",
	.examples = "cay logs work 7\n"
		    "cay logs -f work web",
	.run = run_logs,
	.opts = logs_opts,
	.complete = "sandbox",
};

const struct cmd cmd_attach = {
	.name = "attach",
	.synopsis = "[options] SANDBOX CALL",
	.summary = "Join a detached call: its output, input, signals and exit code",
	.details = "Prints the output that is kept and what follows, sends stdin and signals, and "
		   "ends with the call's exit code. If the call has a terminal (cay exec -d -t), "
		   "ctrl-p ctrl-q leaves it. One client at a time can write to its stdin; a call "
		   "without a terminal was started with an empty stdin.",
	.examples = "cay exec -d -t work --call-id top -- top\n"
		    "cay attach work top",
	.run = run_attach,
	.opts = attach_opts,
	.runs_commands = true,
	.complete = "sandbox",
};
