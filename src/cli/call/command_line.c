/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/call/result.h"
#include "wire/frame.h"

enum { CANNOT_EXECUTE = 126, NO_SUCH_COMMAND = 127 };

static int put_terminal(struct buf *b)
{
	struct winsize ws = { .ws_row = 24, .ws_col = 80 };
	const char *term = getenv("TERM");
	char text[128];
	int r;

	(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &ws);
	r = field_put_u64(b, TAG_TTY, 1);
	if (r == 0)
		r = field_put_u64(b, TAG_ROWS, ws.ws_row);
	if (r == 0)
		r = field_put_u64(b, TAG_COLS, ws.ws_col);
	(void)snprintf(text, sizeof text, "TERM=%.100s", term && *term ? term : "xterm");
	return r < 0 ? r : field_put_c(b, TAG_ENV, text);
}

static int put_request(struct buf *b, char **args, int n, const struct sandbox_opts *o,
		       const struct create_plan *plan)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++)
		r = field_put_c(b, TAG_ARG, args[i]);
	for (int i = 0; plan && i < plan->nenv && r == 0; i++)
		r = field_put_c(b, TAG_ENV, plan->env[i]);
	for (int i = 0; plan && i < plan->nlabels && r == 0; i++)
		r = field_put_c(b, TAG_LABEL, plan->labels[i]);
	if (r == 0 && plan && o->cwd)
		r = field_put_c(b, TAG_CWD, o->cwd);
	if (r == 0 && plan && o->user)
		r = field_put_c(b, TAG_USER, o->user);
	if (r == 0 && o->call_id)
		r = field_put_c(b, TAG_CALL_ID, o->call_id);
	if (r == 0 && o->timeout_ms)
		r = field_put_u64(b, TAG_TIMEOUT_MS, o->timeout_ms);
	if (r == 0 && !plan && !o->keep && !o->outlives)
		r = field_put_u64(b, TAG_FINAL, 1);
	if (r == 0 && o->tty)
		r = put_terminal(b);
	return r < 0 ? r : limit_opts_put_exec(&o->limits, b);
}

int command_run_at(struct cmd_ctx *ctx, int first, const struct session *how,
		   const struct sandbox_opts *o, const struct create_plan *plan, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	struct session s = *how;
	struct session_result res;
	int r = put_request(&b, ctx->args + first, ctx->nargs - first, o, plan);

	if (r == -E2BIG)
		return err_set(e, ERR_LIMIT,
			       "the command and its environment are larger than %d KiB",
			       LIMIT_FRAME_BODY / 1024);
	if (r < 0)
		return err_sys(e, -r, "write the request");
	s.request = &b;
	s.signals = true;
	s.in_fd = STDIN_FILENO;
	s.out_fd = STDOUT_FILENO;
	s.err_fd = STDERR_FILENO;
	s.tty = o->tty && isatty(s.in_fd);
	r = session_run(&s, &res, e);
	if (r == 0 && o->json)
		result_json(&res);
	else if (r == 0)
		result_explain(&res);
	buf_done(&res.denied);
	if (r == 0)
		return res.code;
	if (!res.failed_exec)
		return -1;
	(void)cmd_report(ctx, e);
	return e->sys == ENOENT ? NO_SUCH_COMMAND : CANNOT_EXECUTE;
}

int command_run(struct cmd_ctx *ctx, const struct session *how, const struct sandbox_opts *o,
		struct err *e)
{
	return command_run_at(ctx, 0, how, o, NULL, e);
}
