/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the candidates that `cay __complete` prints, and runs the bash script in bash. With
 * arguments, this program acts as `cay` itself.
 */
#include "cli/cli_test.h"
#include "cli/commands.h"
#include "cli/state/fake_store.h"

static const char *text;
static bool flag;
static struct opt run_opts[] = {
	{ "template", 'T', OPT_TEXT, "NAME", "Template", &text },
	{ "trace", 0, OPT_TEXT, "full|calls", "Trace", &text },
	{ "dir", 0, OPT_TEXT, "PATH[:DEST]", "Directory", &text },
	{ "tty", 't', OPT_FLAG, NULL, "Terminal", &flag },
	{ 0 },
};
static int nothing(struct cmd_ctx *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	return 0;
}
static const struct cmd c_run = { .name = "run",
				  .synopsis = "-- CMD",
				  .summary = "Run",
				  .run = nothing,
				  .opts = run_opts,
				  .stop_at = 1,
				  .runs_commands = true };
static const struct cmd c_exec = { .name = "exec",
				   .synopsis = "SANDBOX CMD [ARG...]",
				   .summary = "Exec",
				   .run = nothing,
				   .opts = run_opts,
				   .stop_at = 2,
				   .runs_commands = true,
				   .complete = "sandbox" };
const struct cmd *const commands[] = { &c_run,	  &c_exec,	  &cmd_ls,
				       &cmd_show, &cmd_kill,	  &cmd_completion,
				       &cmd_help, &cmd_reconcile, &cmd_complete,
				       NULL };

static void boxes(void)
{
	fake_add("aaaaaaaaaaaa", "box", "running", NULL);
	fake_add("bbbbbbbbbbbb", "", "running", NULL);
}

static void commands_are_offered_with_what_they_do(void)
{
	CHECK_STR(cay("__complete", "s", NULL)->out,
		  "show\tShow all that is known about a sandbox\n");
	CHECK_HAS(cay("__complete", "", NULL)->out, "exec\tExec\n");
	CHECK_LACKS(cay("__complete", "", NULL)->out, "reconcile");
	CHECK_HAS(cay("__complete", NULL)->out, "run\tRun\n");
}

static void options_are_offered(void)
{
	CHECK_STR(cay("__complete", "run", "--t", NULL)->out,
		  "--template\tTemplate\n--trace\tTrace\n--tty\tTerminal\n");
	CHECK_HAS(cay("__complete", "ls", "-", NULL)->out, "--json\t");
	CHECK_LACKS(cay("__complete", "run", "-", NULL)->out, "--json");
}

static void values_are_offered_by_their_kind(void)
{
	CHECK_STR(cay("__complete", "run", "--trace", "", NULL)->out, "full\t\ncalls\t\n");
	CHECK_STR(cay("__complete", "run", "--trace=c", NULL)->out, "--trace=calls\t\n");
	CHECK_STR(cay("__complete", "run", "--dir", "./", NULL)->out, ":file\n");
	CHECK_STR(cay("__complete", "run", "--template", "", NULL)->out, "");
}

static void sandboxes_are_offered_by_id_and_name(void)
{
	boxes();
	CHECK_STR(cay("__complete", "show", "", NULL)->out,
		  "box\taaaaaaaaaaaa\naaaaaaaaaaaa\tbox\nbbbbbbbbbbbb\trunning\n");
	CHECK_STR(cay("__complete", "show", "bb", NULL)->out, "bbbbbbbbbbbb\trunning\n");
	CHECK_STR(cay("__complete", "show", "box", "", NULL)->out, "");
	CHECK_HAS(cay("__complete", "kill", "box", "", NULL)->out, "bbbbbbbbbbbb");
}

static void behind_the_sandbox_comes_a_command_then_files(void)
{
	boxes();
	CHECK_HAS(cay("__complete", "exec", "-t", "", NULL)->out, "bbbbbbbbbbbb");
	CHECK_STR(cay("__complete", "exec", "box", "", NULL)->out, ":command\n");
	CHECK_STR(cay("__complete", "exec", "box", "ls", "--t", NULL)->out, ":file\n");
	CHECK_STR(cay("__complete", "run", "--", "", NULL)->out, ":command\n");
	CHECK_STR(cay("__complete", "run", "--", "sh", "-", NULL)->out, ":file\n");
}

static void without_a_store_nothing_is_said(void)
{
	struct ran *r;

	fake.broken = true;
	r = cay("__complete", "show", "", NULL);
	CHECK(r->code == 0);
	CHECK_STR(r->out, "");
	CHECK_STR(r->err, "");
}

static void an_unknown_shell_is_a_mistake(void)
{
	CHECK(cay("completion", "tcsh", NULL)->code == 2);
	CHECK(cay("completion", NULL)->code == 2);
	CHECK_HAS(cay("completion", "zsh", NULL)->out, "#compdef cay\n");
	CHECK_HAS(cay("completion", "fish", NULL)->out, "complete -c cay ");
}

static char self[4096];

/* Returns the candidates of bash for these words, one per line. */
static const char *bash(const char *words)
{
	static char out[8192];
	char line[8192];
	FILE *f;
	size_t n;

	CHECK(setenv("CAY_TEST_SELF", self, 1) == 0);
	(void)snprintf(line, sizeof line,
		       "exec bash --norc --noprofile -c 'cay() { \"$CAY_TEST_SELF\" \"$@\"; }; "
		       "source <(cay completion bash); complete -p cay >/dev/null || exit 1; "
		       "COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cay; "
		       "printf \"%%s\\n\" \"${COMPREPLY[@]}\"' 2>&1",
		       words);
	f = popen(line, "r");
	CHECK(f);
	n = fread(out, 1, sizeof out - 1, f);
	out[n] = '\0';
	CHECK(pclose(f) == 0);
	return out;
}

static void bash_completes_commands_options_and_sandboxes(void)
{
	CHECK_STR(bash("cay sh"), "show\n");
	CHECK_STR(bash("cay run --te"), "--template\n");
	CHECK_STR(bash("cay show bo"), "box\n");
	CHECK_STR(bash("cay show \"\""), "box\naaaaaaaaaaaa\nbbbbbbbbbbbb\n");
}

static void bash_completes_behind_an_equals_sign(void)
{
	CHECK_STR(bash("cay run --trace = c"), "calls\n");
	CHECK_STR(bash("cay run --trace ="), "full\ncalls\n");
}

static void bash_completes_files_and_programs(void)
{
	CHECK_STR(bash("cay run --dir /et"), "/etc\n");
	CHECK_HAS(bash("cay run -- bas"), "bash\n");
}

static const struct t_case cases[] = {
	T(commands_are_offered_with_what_they_do),
	T(options_are_offered),
	T(values_are_offered_by_their_kind),
	T(sandboxes_are_offered_by_id_and_name),
	T(behind_the_sandbox_comes_a_command_then_files),
	T(without_a_store_nothing_is_said),
	T(an_unknown_shell_is_a_mistake),
	T(bash_completes_commands_options_and_sandboxes),
	T(bash_completes_behind_an_equals_sign),
	T(bash_completes_files_and_programs),
};

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (argc > 1) {
		boxes();
		return cli_main(argc, argv);
	}
	return n < 0 || t_run(cases, sizeof cases / sizeof cases[0]);
}
