/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "cli/cli_test.h"
#include "cli/hints.h"
#include "cli/options.h"
#include "cli/sandbox/sandbox_options.h"
#include "ops/create/options.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

const struct cmd *const commands[] = { NULL };

static struct sandbox_opts o;
static struct opt rows[] = { SANDBOX_OPTS_BUILD(o),
			     SANDBOX_OPTS_CALL(o),
			     SANDBOX_OPTS_RUN(o),
			     SANDBOX_OPTS_KEEP(o),
			     { 0 } };
static const struct cmd cmd = { .name = "run", .opts = rows, .stop_at = 1, .runs_commands = true };

static struct cay context;
static struct err e;
static char text[sizeof e.msg + 40]; /* the error as printed */
static struct sandbox_spec spec_of;
static struct create_plan p;
static char top[PATH_MAX]; /* the test's own directory, which is also the working directory */

static void put(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
}

/* Creates top/state as the state directory, and top/p, top/p/sub, top/file and "top/a:b". */
static void set_up(void)
{
	char dir[256];

	/* Not below /dev/shm: mounts from /dev are refused. */
	(void)snprintf(dir, sizeof dir, "/tmp/cay-t-%d-XXXXXX", (int)t_me);
	CHECK(mkdtemp(dir));
	CHECK(realpath(dir, top) && chdir(top) == 0);
	CHECK(mkdir("state", 0700) == 0 && mkdir("state/in", 0700) == 0);
	CHECK(mkdir("p", 0755) == 0 && mkdir("p/sub", 0755) == 0 && mkdir("a:b", 0755) == 0);
	CHECK(symlink("p", "link") == 0);
	put("file");
	(void)snprintf(context.state.dir, sizeof context.state.dir, "%s/state", dir);
	context.state.fd = open("state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(context.state.fd >= 0);
}

static void tear_down(void)
{
	CHECK(chdir("/") == 0);
	create_plan_done(&p);
	sandbox_spec_done(&spec_of);
	close(context.state.fd);
	t_sweep(t_me);
}

/* Resolves up to four options; returns the result. */
static int resolve(const char *a, const char *b, const char *third, const char *d)
{
	const char *argv[5] = { a, b, third, d, NULL };
	struct cmd_ctx ctx = { .cmd = &cmd };
	int argc = 0;

	while (argv[argc])
		argc++;
	free(o.dirs.items);
	free(o.ros.items);
	free(o.envs.items);
	free(o.labels.items);
	o = (struct sandbox_opts){ 0 };
	create_plan_done(&p);
	sandbox_spec_done(&spec_of);
	e.field[0] = '\0';
	CHECK(options_parse(&ctx, argc, (char **)argv, &e) == 0);
	if (sandbox_opts_spec(&o, &spec_of, &e) == 0 &&
	    create_check(&context, &spec_of.spec, &p, &e) == 0)
		return 0;
	hint_message(&e, text, sizeof text);
	return -1;
}

static const char *at_top(const char *tail)
{
	static char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s%s", top, tail);
	return path;
}

/* Checks that an option is refused with these words. */
static void refused(const char *option, const char *words)
{
	if (resolve(option, NULL, NULL, NULL) == 0) {
		tear_down();
		t_fail_str(__FILE__, __LINE__, option, words);
	}
	CHECK(e.kind == ERR_INVALID);
	CHECK_HAS(text, words);
	CHECK(p.nmounts == 0 && !p.mounts);
}

static void nothing_given_is_a_plain_host_sandbox(void)
{
	set_up();
	CHECK(resolve(NULL, NULL, NULL, NULL) == 0);
	CHECK_STR(p.template_, "host");
	CHECK(p.nmounts == 0 && p.nenv == 0 && p.nlabels == 0 && p.trace == TRACE_FULL);
	CHECK(!p.first_dir);
	tear_down();
}

static void a_dir_is_real_and_keeps_its_place(void)
{
	set_up();
	CHECK(resolve("--dir", "./link/../p/.", NULL, NULL) == 0);
	CHECK(p.nmounts == 1 && !p.mounts[0].ro && p.mounts[0].owner == getuid());
	CHECK_STR(p.mounts[0].path, at_top("/p"));
	CHECK_STR(p.mounts[0].dest, at_top("/p"));
	CHECK_STR(p.first_dir, at_top("/p"));
	CHECK(resolve("--dir", "link", NULL, NULL) == 0);
	CHECK_STR(p.mounts[0].path, at_top("/p"));
	tear_down();
}

static void a_dir_can_appear_elsewhere(void)
{
	set_up();
	CHECK(resolve("--dir", "p://project/./x/", NULL, NULL) == 0);
	CHECK_STR(p.mounts[0].dest, "/project/x");
	tear_down();
}

static void an_escaped_colon_belongs_to_the_path(void)
{
	set_up();
	CHECK(resolve("--dir", "a\\:b", NULL, NULL) == 0);
	CHECK_STR(p.mounts[0].path, at_top("/a:b"));
	CHECK(resolve("--dir", "a\\:b:/w\\:x", NULL, NULL) == 0);
	CHECK_STR(p.mounts[0].path, at_top("/a:b"));
	CHECK_STR(p.mounts[0].dest, "/w:x");
	refused("--dir=a:b", "--dir 'a': No such file or directory");
	tear_down();
}

static void bad_dirs_are_refused_by_name(void)
{
	set_up();
	refused("--dir=./x", "--dir './x': No such file or directory");
	CHECK(e.sys == ENOENT);
	refused("--dir=file", "--dir 'file': Not a directory");
	refused("--dir=", "the path is empty");
	refused("--dir=:/x", "the path is empty");
	refused("--dir=p:", "must begin with '/'");
	refused("--dir=p:work", "'work', must begin with '/'");
	refused("--dir=p:/a/../b", "no '..'");
	refused("--dir=p:/..", "no '..'");
	refused("--dir=p:/", "cannot stand in for '/'");
	refused("--dir=p:/./", "cannot stand in for '/'");
	refused("--dir=p:/w:ro", "more than one ':'");
	refused("--dir=p:/proc/x", "'/proc' is made anew");
	refused("--dir=p:/dev", "'/dev' is made anew");
	CHECK(resolve("--dir=p:/devel", NULL, NULL, NULL) == 0);
	CHECK(resolve("--dir=p:/a..b", NULL, NULL, NULL) == 0);
	tear_down();
}

static void a_directory_that_the_caller_cannot_read_is_refused(void)
{
	set_up();
	CHECK(chmod("p", 0) == 0 && chmod(top, 0755) == 0);
	if (geteuid() == 0)
		CHECK(seteuid(65534) == 0);
	refused("--dir=p", "--dir 'p': Permission denied");
	if (getuid() == 0)
		CHECK(seteuid(0) == 0);
	CHECK(chmod("p", 0755) == 0);
	tear_down();
}

static void paths_at_the_limit_and_past_it(void)
{
	char option[LIMIT_PATH + 64] = "--dir=p:/";
	size_t n = strlen(option);

	set_up();
	/* "/" and LIMIT_PATH - 2 more make a path with its terminator. */
	memset(option + n, 'x', LIMIT_PATH - 2);
	CHECK(resolve(option, NULL, NULL, NULL) == 0);
	CHECK(strlen(p.mounts[0].dest) == LIMIT_PATH - 1);
	option[n + LIMIT_PATH - 2] = 'x';
	refused(option, "File name too long");
	tear_down();
}

static void ro_takes_files_too(void)
{
	set_up();
	CHECK(resolve("--ro", "file:/etc/thing", NULL, NULL) == 0);
	CHECK(p.mounts[0].ro);
	CHECK_STR(p.mounts[0].path, at_top("/file"));
	CHECK(!p.first_dir);
	refused("--ro=/dev/null:/x", "neither a file nor a directory");
	tear_down();
}

static void the_state_is_never_shown(void)
{
	char option[PATH_MAX + 16];

	set_up();
	refused("--dir=state", "is part of Cay's own state");
	refused("--dir=state/in:/x", "is part of Cay's own state");
	refused("--dir=.", "holds Cay's own state");
	refused("--ro=/:/x", "holds Cay's own state");
	put("state/secret");
	refused("--ro=state/secret:/x", "is part of Cay's own state");
	CHECK(symlink("state", "alias") == 0);
	refused("--ro=alias:/x", "is part of Cay's own state");
	CHECK(mkdir("state2", 0700) == 0);
	CHECK(resolve("--dir=state2", NULL, NULL, NULL) == 0);
	(void)snprintf(option, sizeof option, "--dir=%s/p", top);
	CHECK(resolve(option, NULL, NULL, NULL) == 0);
	tear_down();
}

static void what_lies_above_is_mounted_first(void)
{
	set_up();
	CHECK(resolve("--dir=p/sub:/w/sub", "--dir=p:/w", "--ro=file:/w/a", NULL) == 0);
	CHECK(p.nmounts == 3);
	CHECK_STR(p.mounts[0].dest, "/w");
	CHECK_STR(p.mounts[1].dest, "/w/a");
	CHECK_STR(p.mounts[2].dest, "/w/sub");
	CHECK_STR(p.first_dir, "/w/sub");
	tear_down();
}

static void one_place_for_two_is_refused(void)
{
	set_up();
	CHECK(resolve("--dir=p:/w", "--ro=file:/w/", NULL, NULL) < 0);
	CHECK_HAS(text, "both to appear at '/w'");
	tear_down();
}

static void mounts_have_a_ceiling(void)
{
	struct create_plan plan = { 0 };
	struct mount_spec mounts[LIMIT_MOUNTS + 1];
	struct create_spec many = { .dirs = mounts, .ndirs = LIMIT_MOUNTS };
	char dest[LIMIT_MOUNTS + 1][32];

	set_up();
	for (int i = 0; i <= LIMIT_MOUNTS; i++) {
		(void)snprintf(dest[i], sizeof dest[i], "/w%d", i);
		mounts[i] = (struct mount_spec){ "p", dest[i] };
	}
	CHECK(create_check(&context, &many, &plan, &e) == 0);
	CHECK(plan.nmounts == LIMIT_MOUNTS);
	create_plan_done(&plan);
	many.ndirs++;
	CHECK(create_check(&context, &many, &plan, &e) < 0);
	CHECK_HAS(e.msg, "33 directories");
	tear_down();
}

static void env_takes_values_and_the_callers_own(void)
{
	set_up();
	CHECK(setenv("CAY_TEST_X", "from me", 1) == 0 && unsetenv("CAY_TEST_Y") == 0);
	CHECK(resolve("-eA=1=2", "-e", "CAY_TEST_X", "-e_b=") == 0);
	CHECK(p.nenv == 3 && !p.env[3]);
	CHECK_STR(p.env[0], "A=1=2");
	CHECK_STR(p.env[1], "CAY_TEST_X=from me");
	CHECK_STR(p.env[2], "_b=");
	refused("--env=CAY_TEST_Y", "--env 'CAY_TEST_Y': not set in your environment");
	CHECK_STR(e.hint, "give a value: --env CAY_TEST_Y=VALUE");
	refused("--env=1A=x", "--env '1A': a name");
	refused("--env==x", "--env '': a name");
	refused("--env=", "a name");
	refused("--env=a-b=secret", "--env 'a-b': a name");
	CHECK(!strstr(text, "secret"));
	tear_down();
}

static void the_last_value_of_a_variable_counts(void)
{
	set_up();
	CHECK(resolve("-eAB=2", "-eA=1", "-eA=3", NULL) == 0);
	CHECK(p.nenv == 2);
	CHECK_STR(p.env[0], "AB=2");
	CHECK_STR(p.env[1], "A=3");
	tear_down();
}

static void labels_are_checked(void)
{
	char option[LIMIT_LABEL + 32] = "--label=k=";
	size_t n = strlen(option);

	set_up();
	CHECK(resolve("--label=task=42", "-la.b/c-d_e=x y=z", NULL, NULL) == 0);
	CHECK(p.nlabels == 2);
	refused("--label=task", "write K=V");
	refused("--label==v", "write K=V");
	refused("--label=a b=v", "write K=V");
	refused("--label=a=\033", "printable");
	CHECK(resolve("-la=1", "-la=2", NULL, NULL) < 0);
	CHECK_HAS(text, "--label 'a' is given twice");
	memset(option + n, 'x', LIMIT_LABEL - 2);
	CHECK(resolve(option, NULL, NULL, NULL) == 0);
	option[n + LIMIT_LABEL - 2] = 'x';
	refused(option, "at most 256");
	tear_down();
}

static void names_and_ids_are_checked(void)
{
	char option[LIMIT_NAME + 32] = "--call-id=";
	size_t n = strlen(option);

	set_up();
	memset(option + n, 'x', LIMIT_NAME);
	CHECK(resolve(option, "--name=box", NULL, NULL) == 0);
	option[n + LIMIT_NAME] = 'x';
	refused(option, "1 to 63 printable");
	refused("--call-id=", "1 to 63 printable");
	refused("--call-id=a\nb", "1 to 63 printable");
	refused("--name=a b", "--name 'a b'");
	refused("--hostname=-x", "--hostname '-x'");
	refused("--hostname=a_b", "--hostname 'a_b'");
	CHECK(resolve("--hostname=box-1.local", NULL, NULL, NULL) == 0);
	refused("--template=", "--template ''");
	tear_down();
}

static void users_and_directories_are_checked(void)
{
	static const char *const good[] = { "--user=root", "--user=0", "--user=1000:1000",
					    "-u_apt",	   "--cwd=/",  "--cwd=/a..b/c" };
	static const char *const bad[] = { "--user=",	  "--user=-x",	"--user=1:",
					   "--user=1:x",  "--user=1x",	"--user=12345678901",
					   "--user=a:b",  "--cwd=",	"--cwd=work",
					   "--cwd=/a/..", "--cwd=/../b" };

	set_up();
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(resolve(good[i], NULL, NULL, NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(bad[i], bad[i][2] == 'u' ? "--user '" : "--cwd '");
	tear_down();
}

static void the_trace_has_two_levels(void)
{
	set_up();
	CHECK(resolve("--trace=calls", NULL, NULL, NULL) == 0 && p.trace == TRACE_CALLS);
	CHECK(resolve("--trace", "full", NULL, NULL) == 0 && p.trace == TRACE_FULL);
	refused("--trace=none", "--trace 'none': full or calls");
	tear_down();
}

static void there_are_two_profiles(void)
{
	set_up();
	CHECK(resolve(NULL, NULL, NULL, NULL) == 0 && p.profile == PROFILE_DEV);
	CHECK(resolve("--profile=dev", "--user=root", NULL, NULL) == 0);
	CHECK(p.profile == PROFILE_DEV);
	CHECK(resolve("--profile", "locked", NULL, NULL) == 0 && p.profile == PROFILE_LOCKED);
	CHECK(resolve("--profile=locked", "--user=user", NULL, NULL) == 0);
	CHECK(resolve("--profile=locked", "--user=1000:1000", NULL, NULL) == 0);
	refused("--profile=open", "--profile 'open': dev or locked");
	refused("--profile=", "--profile '': dev or locked");
	CHECK(resolve("--profile=locked", "--user=root", NULL, NULL) < 0);
	CHECK(resolve("--profile=locked", "--user=0", NULL, NULL) < 0);
	CHECK(resolve("--profile=locked", "--user=1001", NULL, NULL) < 0);
	CHECK(resolve("--profile=locked", "--user=0:1000", NULL, NULL) < 0);
	tear_down();
}

static void the_spec_holds_keys_but_no_values_of_the_environment(void)
{
	char want[3 * PATH_MAX];
	char *spec;

	set_up();
	CHECK(resolve("--dir=p:/w", "-eTOKEN=hush", "-lk=\"v\"", "--ro=file:/a") == 0);
	spec = options_write(&p);
	(void)snprintf(want, sizeof want,
		       "{\"template\":\"host\",\"dirs\":[{\"path\":\"%s/p\",\"dest\":\"/w\"}],"
		       "\"ros\":[{\"path\":\"%s/file\",\"dest\":\"/a\"}],\"env_keys\":[\"TOKEN\"],"
		       "\"cwd\":null,\"user\":null,\"name\":null,\"labels\":{\"k\":\"\\\"v\\\"\"},"
		       "\"hostname\":null,\"profile\":\"dev\",\"trace\":\"full\"}",
		       top, top);
	CHECK_STR(spec, want);
	free(spec);
	CHECK(resolve("--dir=p/sub:/z", "--dir=p:/b", NULL, NULL) == 0);
	spec = options_write(&p);
	CHECK(strstr(spec, "\"dest\":\"/z\"") < strstr(spec, "\"dest\":\"/b\""));
	free(spec);
	tear_down();
}

T_MAIN(T(nothing_given_is_a_plain_host_sandbox), T(a_dir_is_real_and_keeps_its_place),
       T(a_dir_can_appear_elsewhere), T(an_escaped_colon_belongs_to_the_path),
       T(bad_dirs_are_refused_by_name), T(a_directory_that_the_caller_cannot_read_is_refused),
       T(paths_at_the_limit_and_past_it), T(ro_takes_files_too), T(the_state_is_never_shown),
       T(what_lies_above_is_mounted_first), T(one_place_for_two_is_refused),
       T(mounts_have_a_ceiling), T(env_takes_values_and_the_callers_own),
       T(the_last_value_of_a_variable_counts), T(labels_are_checked), T(names_and_ids_are_checked),
       T(users_and_directories_are_checked), T(the_trace_has_two_levels), T(there_are_two_profiles),
       T(the_spec_holds_keys_but_no_values_of_the_environment))
