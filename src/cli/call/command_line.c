/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/call/result.h"
#include "cli/output.h"

enum { CANNOT_EXECUTE = 126, NO_SUCH_COMMAND = 127 };

/* Parameters of a call's terminal. */
struct terminal {
	struct winsize size;
	char term[128];
	const char *
		*env; /* the call's variables, with TERM last: the first of two equal names wins */
};

static void terminal_done(struct terminal *t)
{
	free(t->env);
}
DEFINE_AUTO(struct terminal, terminal_done)

static int put_terminal(struct call_spec *spec, struct terminal *t, struct err *e)
{
	const char *term = getenv("TERM");
	size_t n = 0;

	t->size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &t->size);
	(void)snprintf(t->term, sizeof t->term, "TERM=%.100s", term && *term ? term : "xterm");
	while (spec->env && spec->env[n])
		n++;
	t->env = calloc(n + 2, sizeof *t->env);
	if (!t->env)
		return err_sys(e, ENOMEM, "write the request");
	if (n)
		memcpy(t->env, spec->env, n * sizeof *t->env);
	t->env[n] = t->term;
	spec->env = t->env;
	spec->tty = true;
	spec->rows = t->size.ws_row;
	spec->cols = t->size.ws_col;
	return 0;
}

static struct call_spec spec_of(const struct cmd_ctx *ctx, const struct command *c)
{
	const struct sandbox_opts *o = c->o;
	struct call_spec spec = {
		.argv = (const char *const *)ctx->args + c->first,
		.call_id = o->call_id,
		.timeout_ms = o->timeout_ms,
		.memory = o->limits.call_memory,
		.best_effort = o->limits.best_effort,
		.final = !c->plan && !o->keep && !o->outlives,
		.detached = c->detached,
		.window = c->detached ? LINK_NO_OUTPUT : 0,
	};

	if (c->plan) {
		spec.env = c->plan->env;
		spec.labels = c->plan->labels;
		spec.cwd = o->cwd;
		spec.user = o->user;
	}
	return spec;
}

struct start {
	const struct cmd_ctx *ctx;
	const struct command *c;
};

static void print_call(const struct start *s, uint32_t call, int pid)
{
	struct json_line j;

	if (!s->c->o->json) {
		printf("%u\n", call);
		return;
	}
	json_line_begin(&j);
	json_obj(&j.json);
	json_put_i64(&j.json, "call", call);
	json_put_text(&j.json, "call_id", s->c->o->call_id);
	json_put_i64(&j.json, "pid", pid);
	json_end(&j.json);
	json_line_print_to(&j, stdout);
}

static bool on_started(void *ctx, const struct call_started *started)
{
	const struct start *s = ctx;

	if (s->c->started)
		s->c->started(s->c->ctx);
	if (s->c->detached && link_version(s->c->link) >= 3)
		print_call(s, started->call, started->pid);
	return s->c->detached;
}

int command_exit(const struct call_outcome *outcome, bool json)
{
	if (json)
		result_json(outcome);
	else
		result_explain(outcome);
	return outcome->result.code;
}

/* The args of ctx end with NULL. */
int command_run(struct cmd_ctx *ctx, const struct command *c, struct err *e)
{
	auto_done(call_outcome_done) struct call_outcome outcome = CALL_OUTCOME_INIT;
	auto_done(terminal_done) struct terminal terminal = { 0 };
	struct start start = { ctx, c };
	struct call_spec spec = spec_of(ctx, c);
	const struct call_stdio s = { .link = c->link,
				      .in_fd = c->detached ? FD_NONE : STDIN_FILENO,
				      .out_fd = STDOUT_FILENO,
				      .err_fd = STDERR_FILENO,
				      .tty = !c->detached && c->o->tty && isatty(STDIN_FILENO),
				      .signals = !c->detached,
				      .started = on_started,
				      .ctx = &start };

	if (c->o->tty && put_terminal(&spec, &terminal, e) < 0)
		return -1;
	if (call_stdio_run(&s, &spec, &outcome, e) == 0) {
		if (c->detached && link_version(c->link) < 3)
			return err_set(e, ERR_UNAVAILABLE,
				       "the warden of sandbox '%s' is of an older version: it "
				       "cannot detach a call, and ended this one",
				       link_id(c->link));
		/* The command may end before its start was reported. */
		if (c->detached && !outcome.left)
			print_call(&start, outcome.result.call, 0);
		return c->detached ? 0 : command_exit(&outcome, c->o->json);
	}
	if (strcmp(e->code, "exec.failed") != 0)
		return -1;
	(void)cmd_report(ctx, e);
	return e->sys == ENOENT ? NO_SUCH_COMMAND : CANNOT_EXECUTE;
}
