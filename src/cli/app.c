/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From argv to an exit code: parses the options before the command, finds the command's row, parses
 * its options and runs it. Errors are printed only here.
 */
#include "cli/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/hints.h"
#include "cli/options.h"
#include "cli/output.h"

enum { EXIT_FAILED = 1, EXIT_OURS = 125 };

static bool want_version;
static struct opt global_opts[] = {
	{ "version", 'V', OPT_FLAG, NULL, "Print the version", &want_version },
	{ 0 },
};
/* The last error of a command that runs other commands, for its JSON. */
static struct err unreported;
/* Options before the command's name are parsed as those of a nameless command. */
static const struct cmd global_cmd = { .opts = global_opts, .stop_at = 1, .data = true };

int cmd_usage(struct cmd_ctx *ctx, struct err *e, const char *fmt, ...)
{
	char msg[sizeof e->msg];
	va_list ap;

	ctx->usage = true;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	(void)err_set(e, ERR_INVALID, "%s", msg);
	if (!ctx->cmd->name)
		return err_hint(e, "cay --help lists the commands");
	return err_hint(e, "usage: cay %s %s", ctx->cmd->name,
			ctx->cmd->synopsis ? ctx->cmd->synopsis : "");
}

int cmd_need_args(struct cmd_ctx *ctx, int min, int max, const char *what, struct err *e)
{
	if (ctx->nargs < min)
		return cmd_usage(ctx, e, "missing %s", what);
	if (max >= 0 && ctx->nargs > max)
		return cmd_usage(ctx, e, "unexpected argument '%s'", ctx->args[max]);
	return 0;
}

static void report_json(const struct cmd_ctx *ctx, const struct err *e, int code)
{
	struct json_line j;
	char text[sizeof e->msg + 40], hint[400];

	hint_message(e, text, sizeof text);
	hint_text(e, hint, sizeof hint);
	json_line_begin(&j);
	json_obj(&j.json);
	json_put_obj(&j.json, "error");
	json_put_text(&j.json, "code", err_name(e->kind));
	json_put_text(&j.json, "message", text);
	json_put_text(&j.json, "hint", hint);
	if (e->code[0])
		json_put_text(&j.json, "detail", e->code);
	json_put_i64(&j.json, "exit_code", code);
	json_end(&j.json);
	json_end(&j.json);
	json_line_print_to(&j, ctx->json_result ? stderr : stdout);
}

int cmd_report(const struct cmd_ctx *ctx, const struct err *e)
{
	const char *name = ctx->usage ? ctx->cmd->name : NULL;
	char text[sizeof e->msg + 40], hint[400];
	int code = err_exit(e->kind);

	hint_message(e, text, sizeof text);
	hint_text(e, hint, sizeof hint);

	fprintf(stderr, "%scay%s%s:%s ", out_sgr(ctx->color_err, OUT_RED), name ? " " : "",
		name ? name : "", out_sgr(ctx->color_err, OUT_PLAIN));
	out_safe_to(stderr, str_of(text));
	putc('\n', stderr);
	if (hint[0]) {
		fprintf(stderr, "%shint:%s ", out_sgr(ctx->color_err, OUT_DIM),
			out_sgr(ctx->color_err, OUT_PLAIN));
		out_safe_to(stderr, str_of(hint));
		putc('\n', stderr);
	}
	code = ctx->cmd->runs_commands ? EXIT_OURS : code ? code : EXIT_FAILED;
	if (ctx->json)
		report_json(ctx, e, code);
	else if (ctx->json_result)
		unreported = *e; /* until the exit code is known: codes 126 and 127 belong to the
				    command */
	return code;
}

/* used: number of words in the command's name. */
static int run_command(struct cmd_ctx *ctx, int used, struct err *e)
{
	int argc = ctx->nargs - used, r;
	char **argv = ctx->args + used;
	struct err ignored = { 0 };

	if (ctx->cmd->raw) {
		ctx->args = argv;
		ctx->nargs = argc;
		return ctx->cmd->run(ctx, e);
	}
	r = options_parse(ctx, argc, argv, e);
	if (out_json_to(ctx, r < 0 ? &ignored : e) < 0 || r < 0)
		return -1;
	out_colors(ctx);
	if (ctx->help)
		return help_command(ctx->cmd, ctx->color_out);
	if (ctx->json && !option_long(ctx->cmd, STR("json")))
		return cmd_usage(ctx, e, "there is no --json for this command");
	return ctx->cmd->run(ctx, e);
}

/* "cay policy" and "cay policy --help". */
static bool wants_group(const struct cmd_ctx *ctx)
{
	if (!cmd_is_group(ctx->args[0]))
		return false;
	return ctx->nargs == 1 || strcmp(ctx->args[1], "--help") == 0 ||
	       strcmp(ctx->args[1], "-h") == 0;
}

static int dispatch(struct cmd_ctx *ctx, int argc, char **argv, struct err *e)
{
	const struct cmd *cmd;
	int used = 0;

	want_version = false;
	if (options_parse(ctx, argc - 1, argv + 1, e) < 0)
		return -1;
	out_colors(ctx);
	if (want_version) {
		printf("cay %s\n", CAY_VERSION);
		return 0;
	}
	if (ctx->help || ctx->nargs == 0)
		return help_overview(ctx->color_out);
	cmd = cmd_find(ctx->args, ctx->nargs, &used);
	if (!cmd && wants_group(ctx))
		return help_group(ctx->args[0], ctx->color_out);
	if (!cmd)
		return cmd_unknown(ctx, ctx->args, ctx->nargs, e);
	ctx->cmd = cmd;
	return run_command(ctx, used, e);
}

/* Ignore a reader that went away; report every other loss of output. */
static int finish(const struct cmd_ctx *ctx, int code)
{
	struct pollfd p = { .fd = STDOUT_FILENO };
	struct err e;
	bool had_error = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !had_error)
		return code;
	if (errno != EPIPE && !(poll(&p, 1, 0) == 1 && (p.revents & POLLERR))) {
		(void)err_sys(&e, errno ? errno : EIO, "cannot write to standard output");
		fprintf(stderr, "cay: %s\n", e.msg);
	}
	if (ctx->cmd->runs_commands)
		return code ? code : EXIT_OURS;
	return code ? code : EXIT_FAILED;
}

static int finish_json(const struct cmd_ctx *ctx, int code)
{
	int r = out_json_finish();

	if (r == 0)
		return code;
	fprintf(stderr, "cay: cannot write JSON: %s\n", strerror(-r));
	if (code)
		return code;
	return ctx->cmd->runs_commands ? EXIT_OURS : EXIT_FAILED;
}

static void on_sigpipe(int sig)
{
	(void)sig;
}

/*
 * Occupy descriptors 0 to 2 before opening anything: printf would write into a database that got
 * number 1. They are opened for reading, so that output to them fails. SIGPIPE gets a handler
 * instead of SIG_IGN, because exec() resets a handler but would pass an ignored signal on to
 * children.
 */
static int prepare_process(void)
{
	struct sigaction sa = { .sa_handler = on_sigpipe, .sa_flags = SA_RESTART };

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", O_RDONLY /* not O_CLOEXEC: children need them too */) != fd)
			return -1;
	return sigaction(SIGPIPE, &sa, NULL);
}

int cli_main(int argc, char **argv)
{
	struct cmd_ctx ctx = { .cmd = &global_cmd };
	struct err e = { 0 };
	int r;

	unreported = (struct err){ 0 };
	if (argc < 1 || prepare_process() < 0)
		return EXIT_OURS;
	r = dispatch(&ctx, argc, argv, &e);
	if (r < 0)
		r = cmd_report(&ctx, &e);
	if (unreported.kind != ERR_NONE)
		report_json(&ctx, &unreported, r);
	return finish(&ctx, finish_json(&ctx, r));
}
