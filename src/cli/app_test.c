/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "cli/cli_test.h"
#include "cli/commands.h"
#include "cli/output.h"

static int fail(struct cmd_ctx *ctx, struct err *e)
{
	(void)ctx;
	(void)err_set(e, ERR_NOT_FOUND, "thing 'x\033[2J' not found");
	return err_hint(e, "look\nhere");
}

static int say(struct cmd_ctx *ctx, struct err *e)
{
	(void)e;
	for (int i = 0; i < ctx->nargs; i++)
		printf("%s[%s]%s", out_sgr(ctx->color_out, OUT_RED), ctx->args[i],
		       out_sgr(ctx->color_out, OUT_PLAIN));
	return 7;
}

static int flood(struct cmd_ctx *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	for (int i = 0; i < 100000; i++)
		puts("0123456789");
	return 0;
}

static struct opt show_opts[] = {
	{ "template", 'T', OPT_TEXT, "NAME", "What it starts from", &(const char *){ NULL } },
	{ 0 },
};
static const struct cmd c_show = { .name = "show",
				   .synopsis = "SANDBOX",
				   .summary = "Show one",
				   .examples = "cay show box\ncay show .x",
				   .details = "First.\n\nSecond \\ with .dots and 'quotes'.",
				   .run = fail,
				   .opts = show_opts,
				   .data = true };
static const struct cmd c_run = { .name = "run",
				  .synopsis = "[options] -- CMD",
				  .summary = "Run one",
				  .run = fail,
				  .runs_commands = true,
				  .opts = show_opts,
				  .stop_at = 1 };
static const struct cmd c_say = { .name = "say", .summary = "Say words", .run = say };
static const struct cmd c_flood = { .name = "flood", .summary = "Say much", .run = flood };
static const struct cmd c_secret = {
	.name = "secret", .summary = "s", .run = say, .hidden = true, .raw = true
};
const struct cmd *const commands[] = { &c_show,	  &c_run,    &c_say,	   &c_flood,
				       &c_secret, &cmd_help, &cmd_version, NULL };

static void an_error_is_printed_once_with_its_hint(void)
{
	struct ran *r = cay("show", NULL);

	CHECK(r->code == 5);
	CHECK_STR(r->err, "cay: thing 'x\\x1b[2J' not found\nhint: look\\nhere\n");
	CHECK_STR(r->out, "");
}

static void with_json_the_error_is_an_object_too(void)
{
	struct ran *r = cay("show", "--json", NULL);

	CHECK(r->code == 5);
	CHECK_STR(r->out,
		  "{\"error\":{\"code\":\"not_found\",\"message\":\"thing 'x\\u001b[2J' not "
		  "found\",\"hint\":\"look\\nhere\",\"exit_code\":5}}\n");
	CHECK_HAS(r->err, "cay: thing");
}

static void a_usage_error_names_the_command(void)
{
	struct ran *r = cay("show", "--tempalte", NULL);

	CHECK(r->code == 2);
	CHECK_STR(r->err, "cay show: unknown option '--tempalte'; did you mean '--template'?\n"
			  "hint: usage: cay show SANDBOX\n");
}

static void commands_that_run_commands_fail_with_125(void)
{
	CHECK(cay("run", "x", NULL)->code == 125);
	CHECK(cay("run", "--tempalte", NULL)->code == 125);
}

static void the_result_is_the_exit_code(void)
{
	struct ran *r = cay("say", "a", "--", "-b", NULL);

	CHECK(r->code == 7);
	CHECK_STR(r->out, "[a][-b]");
}

static void a_near_command_is_suggested(void)
{
	struct ran *r = cay("shwo", "--json", NULL);

	CHECK(r->code == 2);
	CHECK_HAS(r->err, "cay: no command 'shwo'; did you mean 'show'?\n");
	CHECK_HAS(r->out, "{\"error\":{\"code\":\"invalid\"");
}

static void a_far_or_hidden_command_is_not(void)
{
	CHECK_LACKS(cay("frobnicate", NULL)->err, "did you mean");
	CHECK_LACKS(cay("secrte", NULL)->err, "did you mean");
}

static void a_raw_command_gets_its_words_as_they_are(void)
{
	CHECK_STR(cay("secret", "--help", "--", "-x", NULL)->out, "[--help][--][-x]");
}

static void every_way_to_ask_for_the_overview_gives_it(void)
{
	char first[sizeof((struct ran *)0)->out];
	int lines = 0;

	CHECK(cay(NULL, NULL)->code == 0);
	(void)snprintf(first, sizeof first, "%s", cay(NULL, NULL)->out);
	CHECK_HAS(first, "cay run -- echo hello");
	CHECK_HAS(first, "Show one");
	CHECK_LACKS(first, "secret");
	for (const char *p = first; *p; p++)
		lines += *p == '\n';
	CHECK(lines <= 24);
	CHECK_STR(cay("help", NULL)->out, first);
	CHECK_STR(cay("--help", NULL)->out, first);
	CHECK_STR(cay("-h", NULL)->out, first);
}

static void help_of_a_command_comes_from_its_rows(void)
{
	char first[sizeof((struct ran *)0)->out];
	struct ran *r = cay("show", "--help", NULL);

	CHECK(r->code == 0);
	(void)snprintf(first, sizeof first, "%s", r->out);
	CHECK_HAS(first, "Usage: cay show SANDBOX\n");
	CHECK_HAS(first, "  -T, --template NAME       What it starts from\n");
	CHECK_HAS(first, "      --json ");
	CHECK_HAS(first, "Examples\n  cay show box\n  cay show .x\n");
	CHECK_STR(cay("help", "show", NULL)->out, first);
	CHECK_LACKS(cay("say", "--help", NULL)->out, "--json");
	r = cay("help", "shwo", NULL);
	CHECK(r->code == 2);
	CHECK_HAS(r->err, "did you mean 'show'?");
}

static void the_version_is_one_line(void)
{
	CHECK_STR(cay("--version", NULL)->out, "cay " CAY_VERSION "\n");
	CHECK_STR(cay("version", NULL)->out, "cay " CAY_VERSION "\n");
	CHECK_HAS(cay("version", "--json", NULL)->out, "{\"version\":\"" CAY_VERSION "\",");
}

static void options_before_the_command_count(void)
{
	CHECK_HAS(cay("--json", "show", NULL)->out, "\"not_found\"");
	CHECK_HAS(cay("--color=always", "say", "x", NULL)->out, "\033[31m[x]");
	CHECK(cay("--bogus", "show", NULL)->code == 2);
	CHECK_HAS(cay("--bogus", "show", NULL)->err, "cay: unknown option '--bogus'");
	CHECK_HAS(cay("--json", "say", NULL)->err, "cay say: there is no --json");
}

static void no_colour_without_a_terminal(void)
{
	setenv("TERM", "xterm", 1);
	CHECK_LACKS(cay("say", "x", NULL)->out, "\033");
	CHECK_LACKS(cay("--help", NULL)->out, "\033");
	CHECK_HAS(cay("--color=always", "--help", NULL)->out, "\033[1m");
}

/* Runs a child with a terminal as stdout; returns its output, or the last bytes of it. */
static void on_terminal(const char *color, char *out, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, st;
	char *argv[] = { (char *)"cay", (char *)color, (char *)"say", (char *)"x", NULL };
	ssize_t n;
	pid_t pid;

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		dup2(slave, STDOUT_FILENO);
		exit(cli_main(4, argv));
	}
	CHECK(waitpid(pid, &st, 0) == pid);
	n = read(master, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	close(slave);
	close(master);
}

static void a_terminal_gets_colour_unless_told_otherwise(void)
{
	char out[256];

	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	on_terminal("--color=auto", out, sizeof out);
	CHECK_HAS(out, "\033[31m[x]");
	on_terminal("--color=never", out, sizeof out);
	CHECK_STR(out, "[x]");
	setenv("TERM", "dumb", 1);
	on_terminal("--color=auto", out, sizeof out);
	CHECK_STR(out, "[x]");
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	on_terminal("--color=auto", out, sizeof out);
	CHECK_STR(out, "[x]");
	on_terminal("--color=always", out, sizeof out);
	CHECK_HAS(out, "\033[31m[x]");
}

/* Returns the exit code of `cay ARG` with that stdout (-1: closed); stderr goes to err. */
static int with_stdout(int fd, const char *arg, char *err, size_t size)
{
	char *argv[] = { (char *)"cay", (char *)arg, NULL };
	int to = memfd_create("err", MFD_CLOEXEC), st;
	pid_t pid = fork();

	if (pid == 0) {
		dup2(to, STDERR_FILENO);
		if (fd < 0)
			close(STDOUT_FILENO);
		else
			dup2(fd, STDOUT_FILENO);
		_exit(cli_main(2, argv));
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
	err[pread(to, err, size - 1, 0)] = '\0';
	close(to);
	return WEXITSTATUS(st);
}

static void a_full_disk_is_an_error(void)
{
	char err[256] = "";
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK(with_stdout(full, "--help", err, sizeof err) == 1);
	CHECK_STR(err, "cay: cannot write to standard output: No space left on device\n");
	CHECK(with_stdout(full, "flood", err, sizeof err) == 1);
	CHECK_HAS(err, "cay: cannot write to standard output");
}

static void a_reader_that_left_is_an_error_without_words(void)
{
	char err[256] = "";
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	close(p[0]);
	CHECK(with_stdout(p[1], "--help", err, sizeof err) == 1);
	CHECK_STR(err, "");
	CHECK(with_stdout(p[1], "flood", err, sizeof err) == 1);
	CHECK_STR(err, "");
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) == 0);
	close(p[0]);
	CHECK(with_stdout(p[1], "--help", err, sizeof err) == 1);
	CHECK_STR(err, "");
}

static void a_closed_stdout_is_an_error(void)
{
	char err[256] = "";

	CHECK(with_stdout(-1, "--help", err, sizeof err) == 1);
	CHECK_STR(err, "cay: cannot write to standard output: Bad file descriptor\n");
}

static void programs_we_start_get_sigpipe_as_usual(void)
{
	struct sigaction sa;

	CHECK(cay("--version", NULL)->code == 0);
	CHECK(sigaction(SIGPIPE, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN);
}

static void the_manual_page_is_clean(void)
{
	struct ran *r = cay("help", "--man", NULL);
	FILE *f;

	CHECK(r->code == 0);
	CHECK_HAS(r->out, ".TH CAY 1");
	CHECK_HAS(r->out, ".SS cay show SANDBOX\n");
	CHECK_HAS(r->out, "Second \\e with .dots");
	CHECK_LACKS(r->out, "secret");
	if (system("command -v man >/dev/null 2>&1") != 0)
		return;
	f = popen(
		"test -z \"$(LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l - 2>&1 >/dev/null)\"",
		"w");
	CHECK(f && fputs(r->out, f) >= 0 && pclose(f) == 0);
}

T_MAIN(T(an_error_is_printed_once_with_its_hint), T(with_json_the_error_is_an_object_too),
       T(a_usage_error_names_the_command), T(commands_that_run_commands_fail_with_125),
       T(the_result_is_the_exit_code), T(a_near_command_is_suggested),
       T(a_far_or_hidden_command_is_not), T(a_raw_command_gets_its_words_as_they_are),
       T(every_way_to_ask_for_the_overview_gives_it), T(help_of_a_command_comes_from_its_rows),
       T(the_version_is_one_line), T(options_before_the_command_count),
       T(no_colour_without_a_terminal), T(a_terminal_gets_colour_unless_told_otherwise),
       T(a_full_disk_is_an_error), T(a_reader_that_left_is_an_error_without_words),
       T(a_closed_stdout_is_an_error), T(programs_we_start_get_sigpipe_as_usual),
       T(the_manual_page_is_clean))
