/* SPDX-License-Identifier: Apache-2.0 */
/* Tests ls, show, ps, kill, gc and settle against a fake store and fake wardens. */
#include "cli/cli_test.h"
#include "cli/commands.h"
#include "cli/state/fake_store.h"

const struct cmd *const commands[] = { &cmd_ls, &cmd_show,	&cmd_ps, &cmd_kill,
				       &cmd_gc, &cmd_reconcile, NULL };

static const char spec[] =
	"{\"template\":\"host\",\"dirs\":[{\"path\":\"/home/me/p\",\"dest\":\"/project\"}],"
	"\"ros\":[{\"path\":\"/etc/x\",\"dest\":\"/etc/x\"}],\"env_keys\":[\"KEY\"],\"cwd\":\"/project\","
	"\"labels\":{\"task\":\"42\"},\"trace\":\"full\"}";

static void two_boxes(void)
{
	fake_add("aaaaaaaaaaaa", "box", "running", spec);
	fake_add("bbbbbbbbbbbb", "", "running", NULL);
	fake_add("cccccccccccc", "old", "lost", NULL);
}

static void ls_shows_what_lives(void)
{
	struct ran *r;

	two_boxes();
	r = cay("ls", NULL);
	CHECK(r->code == 0);
	CHECK_HAS(r->out, "ID            NAME  STATE    TEMPLATE");
	CHECK_HAS(r->out, "aaaaaaaaaaaa  box   running  host");
	CHECK_HAS(r->out, "1/7     -  /home/me/p\n");
	CHECK_HAS(r->out, "1/7     -  -\n");
	CHECK_HAS(r->out, "cccccccccccc  old   lost");
	CHECK_LACKS(r->out, "\033");
	CHECK_STR(r->err, "");
	CHECK_HAS(fake.log, "reconcile:all");
}

static void ls_all_is_the_default(void)
{
	char plain[512];

	two_boxes();
	CHECK(str_copy(plain, sizeof plain, str_of(cay("ls", NULL)->out)));
	CHECK_STR(cay("ls", "--all", NULL)->out, plain);
}

static void ls_quiet_prints_ids_only(void)
{
	two_boxes();
	CHECK_STR(cay("ls", "-q", NULL)->out, "aaaaaaaaaaaa\nbbbbbbbbbbbb\ncccccccccccc\n");
}

static void ls_filters_by_label_and_value(void)
{
	two_boxes();
	CHECK_STR(cay("ls", "-q", "--label", "task=42", NULL)->out, "aaaaaaaaaaaa\n");
}

static void ls_filters_by_label_alone(void)
{
	two_boxes();
	CHECK_STR(cay("ls", "-q", "--label", "task", NULL)->out, "aaaaaaaaaaaa\n");
}

static void ls_with_another_value_finds_nothing(void)
{
	two_boxes();
	CHECK_STR(cay("ls", "-q", "--label", "task=4", NULL)->out, "");
}

static void ls_json_is_one_object_per_line(void)
{
	two_boxes();
	CHECK_STR(
		cay("ls", "--json", NULL)->out,
		"{\"id\":\"aaaaaaaaaaaa\",\"name\":\"box\",\"state\":\"running\",\"template\":\"host\","
		"\"ephemeral\":false,\"created\":\"2026-01-02T03:00:00.000000Z\",\"calls_running\":1,"
		"\"calls_total\":7,\"ttl_left_ms\":null,\"dirs\":[{\"path\":\"/home/me/p\",\"dest\":\"/project\"}],"
		"\"labels\":{\"task\":\"42\"}}\n"
		"{\"id\":\"bbbbbbbbbbbb\",\"name\":null,\"state\":\"running\",\"template\":\"host\","
		"\"ephemeral\":false,\"created\":\"2026-01-02T03:00:00.000000Z\",\"calls_running\":1,"
		"\"calls_total\":7,\"ttl_left_ms\":null,\"dirs\":[],\"labels\":{}}\n"
		"{\"id\":\"cccccccccccc\",\"name\":\"old\",\"state\":\"lost\",\"template\":\"host\","
		"\"ephemeral\":false,\"created\":\"2026-01-02T03:00:00.000000Z\",\"calls_running\":null,"
		"\"calls_total\":null,\"ttl_left_ms\":null,\"dirs\":[],\"labels\":{}}\n");
}

static void ls_of_nothing_is_silent_in_a_pipe(void)
{
	struct ran *r = cay("ls", NULL);

	CHECK(r->code == 0);
	CHECK_STR(r->out, "");
	CHECK_STR(r->err, "");
}

static void ls_survives_specs_that_are_no_objects(void)
{
	fake_add("aaaaaaaaaaaa", "", "running", "[1,");
	fake_add("bbbbbbbbbbbb", "", "running", "\"x\"");
	fake_add("cccccccccccc", "", "running", "{\"dirs\":7,\"labels\":[1]}");
	fake_add("dddddddddddd", "", "running", "{\"dirs\":[{\"path\":\"\\u001b[2J\"}]}");
	CHECK(cay("ls", NULL)->code == 0);
	CHECK_HAS(cay("ls", NULL)->out, "\\x1b[2J\n");
}

static const struct call_row calls[] = {
	{ .call = 1,
	  .call_id = "step-1",
	  .argv = (char *)"[\"sh\",\"-c\",\"echo 'hi'\"]",
	  .start_ns = 1767322800ull * 1000000000ull,
	  .duration_us = 1290000,
	  .status = 3 << 8,
	  .reason = "exit",
	  .out_bytes = 3 },
	{ .call = 2,
	  .argv = (char *)"[{\"b64\":\"/w==\"}]",
	  .duration_us = 5,
	  .status = 9,
	  .reason = "signal" },
	{ .call = 3, .argv = (char *)"[\"sleep\",\"9\"]", .start_ns = 1, .duration_us = -1 },
};

static void show_tells_all(void)
{
	struct ran *r;

	two_boxes();
	fake.calls = calls;
	fake.ncalls = 3;
	r = cay("show", "box", NULL);
	CHECK(r->code == 0);
	CHECK_HAS(r->out, "id         aaaaaaaaaaaa\n");
	CHECK_HAS(r->out, "state      running\n");
	CHECK_HAS(r->out, "dir        /home/me/p as /project\n");
	CHECK_HAS(r->out, "ro         /etc/x\n");
	CHECK_HAS(r->out, "env        KEY\n");
	CHECK_HAS(r->out, "label      task=42\n");
	CHECK_HAS(r->out, "1  step-1       exit 3        1.2s  sh -c 'echo '\\''hi'\\'''\n");
	CHECK_HAS(r->out, "SIGKILL        5us  b64:/w==\n");
	CHECK_HAS(r->out, "running");
	CHECK_HAS(fake.log, "index:aaaaaaaaaaaa");
}

static void show_says_what_a_rootless_sandbox_lacks(void)
{
	two_boxes();
	CHECK(!strstr(cay("show", "box", NULL)->out, "lacks"));
	CHECK_HAS(cay("show", "box", "--json", NULL)->out, "\"lacks\":null");
	fake.boxes[0].row.uid_slot = -1;
	CHECK_HAS(cay("show", "box", NULL)->out, "\nlacks      root, other users, sudo");
	fake.boxes[0].row.spec = strdup("{\"profile\":\"locked\"}");
	CHECK(!strstr(cay("show", "box", NULL)->out, "lacks"));
}

static void show_json_is_one_object(void)
{
	struct ran *r;

	two_boxes();
	fake.calls = calls;
	fake.ncalls = 3;
	r = cay("show", "aaaa", "--json", NULL);
	CHECK(strchr(r->out, '\n') == r->out + strlen(r->out) - 1);
	CHECK_HAS(r->out, "\"rss_bytes\":2097152,\"init_pid\":4242");
	CHECK_HAS(r->out, "\"options\":{\"template\":\"host\"");
	CHECK_HAS(r->out,
		  "{\"call\":1,\"call_id\":\"step-1\",\"argv\":[\"sh\",\"-c\",\"echo 'hi'\"],"
		  "\"labels\":{},\"state\":\"ended\",\"reason\":\"exit\",\"exit_code\":3,"
		  "\"signal\":null,\"start\":\"2026-01-02T03:00:00.000000Z\","
		  "\"duration_ms\":1290.000,\"stdout_bytes\":3,\"stderr_bytes\":0}");
	CHECK_HAS(r->out, "\"reason\":\"signal\",\"exit_code\":null,\"signal\":9");
	CHECK_HAS(r->out,
		  "\"state\":\"running\",\"reason\":null,\"exit_code\":null,\"signal\":null");
}

static void show_says_why_a_sandbox_is_lost(void)
{
	struct ran *r;

	fake_init();
	two_boxes();
	fake_shell("mkdir", fake.dir, "/sandboxes/cccccccccccc");
	fake_shell("touch -d @1", fake.dir, "/sandboxes/cccccccccccc/trace.jsonl");
	fake_shell("printf 'one\\ntwo\\033[2J\\n' >", fake.dir,
		   "/sandboxes/cccccccccccc/warden.log");
	r = cay("show", "old", NULL);
	fake_done();
	CHECK_HAS(r->out, "state      lost: the machine was restarted\n");
	CHECK_HAS(r->out, "log        two\\x1b[2J\n");
}

static void show_finds_a_loss_that_the_catalog_does_not_know_yet(void)
{
	struct ran *r;

	fake_init();
	two_boxes();
	fake.boxes[0].alive = false;
	fake_shell("mkdir", fake.dir, "/sandboxes/aaaaaaaaaaaa");
	r = cay("show", "box", NULL);
	fake_done();
	CHECK_HAS(r->out, "state      lost: its warden died\n");
}

static void an_unknown_sandbox_is_5(void)
{
	struct ran *r = cay("show", "nosuch", NULL);

	CHECK(r->code == 5);
	CHECK_HAS(r->err, "cay: sandbox 'nosuch' not found\nhint: cay ls lists them\n");
	CHECK(cay("ps", "nosuch", NULL)->code == 5);
	CHECK(cay("show", NULL)->code == 2);
	CHECK_HAS(cay("show", "a", "b", NULL)->err, "cay show: unexpected argument 'b'\n");
}

static void ps_prints_what_runs_and_nothing_that_steers(void)
{
	struct ran *r;

	two_boxes();
	r = cay("ps", "box", NULL);
	CHECK_STR(r->out, "PID  PPID  CALL  USER  STATE   CPU   RSS  COMMAND\n"
			  "  1     0     -  0     S       1ms  800K  cay-init\n"
			  "  7     1     3  1000  R      2.5s   20M  sh -c \\x1b]0;evil\\x07\n");
}

static void ps_json_has_numbers(void)
{
	two_boxes();
	CHECK_HAS(cay("ps", "box", "--json", NULL)->out,
		  "{\"pid\":7,\"ppid\":1,\"call\":3,\"user\":\"1000\",\"state\":\"R\","
		  "\"cpu_ms\":2500.000,\"rss_bytes\":20971520,"
		  "\"args\":\"sh -c \\u001b]0;evil\\u0007\"}\n");
}

static void kill_ends_the_warden_then_files_then_the_row(void)
{
	struct ran *r;

	two_boxes();
	r = cay("kill", "box", NULL);
	CHECK(r->code == 0);
	CHECK_STR(r->out, "aaaaaaaaaaaa\n");
	CHECK_STR(fake.log, "destroy:aaaaaaaaaaaa remove:aaaaaaaaaaaa del:aaaaaaaaaaaa ");
}

static void kill_removes_what_a_lost_one_left(void)
{
	two_boxes();
	CHECK(cay("kill", "old", NULL)->code == 0);
	CHECK_STR(fake.log, "remove:cccccccccccc del:cccccccccccc ");
}

static void kill_waits_for_a_lock_that_is_held_for_a_moment(void)
{
	two_boxes();
	fake.boxes[0].busy = 3;
	CHECK(cay("kill", "box", NULL)->code == 0);
	CHECK_HAS(fake.log, "del:aaaaaaaaaaaa");
}

static void kill_goes_on_after_a_failure_and_keeps_the_first_code(void)
{
	struct ran *r;

	two_boxes();
	fake.boxes[0].deaf = true;
	r = cay("kill", "nosuch", "box", "bbbb", "old", NULL);
	CHECK(r->code == 5);
	CHECK_STR(r->out, "bbbbbbbbbbbb\ncccccccccccc\n");
	CHECK_HAS(r->err, "cay: sandbox 'nosuch' not found\n");
	CHECK_HAS(r->err, "cay: cannot end sandbox 'aaaaaaaaaaaa': sandbox");
	CHECK_LACKS(fake.log, "del:aaaaaaaaaaaa");
}

static void kill_of_one_sandbox_by_two_names_is_one_act(void)
{
	struct ran *r;

	two_boxes();
	r = cay("kill", "box", "aaaa", NULL);
	CHECK(r->code == 0);
	CHECK_STR(r->out, "aaaaaaaaaaaa\n");
}

static void kill_wants_to_know_whom(void)
{
	two_boxes();
	CHECK(cay("kill", NULL)->code == 2);
	CHECK_STR(fake.log, "");
}

static void kill_all_with_a_name_is_a_mistake(void)
{
	two_boxes();
	CHECK(cay("kill", "--all", "box", NULL)->code == 2);
	CHECK_STR(fake.log, "");
}

static void kill_all_does_not_ask_without_a_terminal(void)
{
	two_boxes();
	CHECK(freopen("/dev/null", "r", stdin));
	CHECK_STR(cay("kill", "--all", NULL)->out, "aaaaaaaaaaaa\nbbbbbbbbbbbb\ncccccccccccc\n");
}

static void kill_dry_run_ends_nothing(void)
{
	two_boxes();
	CHECK_STR(cay("kill", "--all", "--dry-run", NULL)->out,
		  "aaaaaaaaaaaa\nbbbbbbbbbbbb\ncccccccccccc\n");
	CHECK_STR(fake.log, "");
}

static void answer_on_terminal(const char *text)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(slave >= 0 && dup2(slave, STDIN_FILENO) == STDIN_FILENO);
	CHECK(write(master, text, strlen(text)) == (ssize_t)strlen(text));
}

static void kill_all_asks_on_a_terminal_and_takes_no(void)
{
	struct ran *r;

	two_boxes();
	answer_on_terminal("\n");
	r = cay("kill", "--all", NULL);
	CHECK(r->code == 1);
	CHECK_HAS(r->err, "  aaaaaaaaaaaa  running  box\n");
	CHECK_HAS(r->err, "End 3 sandboxes and delete all that is in them? [y/N] ");
	CHECK_STR(r->out, "");
	CHECK_STR(fake.log, "");
}

static void kill_all_asks_on_a_terminal_and_takes_yes(void)
{
	two_boxes();
	answer_on_terminal("y\n");
	CHECK(cay("kill", "--all", NULL)->code == 0);
	CHECK_HAS(fake.log, "del:cccccccccccc");
}

static void kill_json_mixes_results_and_errors(void)
{
	two_boxes();
	CHECK_STR(cay("kill", "nosuch", "box", "--json", NULL)->out,
		  "{\"error\":{\"code\":\"not_found\",\"message\":\"sandbox 'nosuch' not found\","
		  "\"hint\":\"cay ls lists them\",\"exit_code\":5}}\n"
		  "{\"id\":\"aaaaaaaaaaaa\",\"name\":\"box\",\"ended\":true}\n");
}

static void gc_keeps_the_lost(void)
{
	struct ran *r;

	fake_init();
	two_boxes();
	r = cay("gc", NULL);
	fake_done();
	CHECK(r->code == 0);
	CHECK_STR(r->out, "Nothing to remove.\n");
	CHECK_STR(r->err, "1 lost, kept; remove with: cay gc --lost\n");
	CHECK_STR(fake.log, "reconcile:all ");
}

static void gc_lost_counts_what_it_freed(void)
{
	unsigned long long bytes = 0;
	struct ran *r;
	const char *at;

	fake_init();
	two_boxes();
	fake_shell("mkdir -p", fake.dir, "/sandboxes/cccccccccccc/upper/0");
	fake_shell("mkdir -p", fake.dir, "/sandboxes/aaaaaaaaaaaa");
	fake_shell("head -c 300000 /dev/urandom >", fake.dir, "/sandboxes/cccccccccccc/upper/0/f");
	fake_shell("head -c 900000 /dev/urandom >", fake.dir, "/sandboxes/aaaaaaaaaaaa/f");
	fake.removed = 2;
	r = cay("gc", "--lost", "--json", NULL);
	fake_done();
	CHECK(r->code == 0);
	CHECK_HAS(r->out, "{\"leftovers_removed\":2,\"lost_removed\":1,\"lost_kept\":0,");
	at = strstr(r->out, "\"freed_bytes\":");
	CHECK(at && sscanf(at, "\"freed_bytes\":%llu", &bytes) == 1);
	CHECK(bytes >= 300000 && bytes < 400000);
	CHECK_STR(fake.log, "reconcile:all remove:cccccccccccc del:cccccccccccc ");
}

static void settle_is_quiet(void)
{
	struct ran *r;

	two_boxes();
	fake.boxes[0].alive = false;
	fake.boxes[0].busy = 2;
	r = cay("reconcile", "aaaaaaaaaaaa", NULL);
	CHECK(r->code == 0);
	CHECK_STR(r->out, "");
	CHECK_STR(r->err, "");
	CHECK_STR(fake.log, "reconcile:aaaaaaaaaaaa ");
}

static void settle_takes_an_id(void)
{
	two_boxes();
	CHECK(cay("reconcile", "../evil", NULL)->code == 2);
	CHECK_STR(fake.log, "");
}

static void a_state_that_cannot_be_opened_is_said(void)
{
	struct ran *r;

	fake.broken = true;
	r = cay("ls", NULL);
	CHECK(r->code == 1);
	CHECK_STR(r->err, "cay: state directory '/nowhere': Permission denied\n");
}

T_MAIN(T(ls_shows_what_lives), T(ls_all_is_the_default), T(ls_quiet_prints_ids_only),
       T(ls_filters_by_label_and_value), T(ls_filters_by_label_alone),
       T(ls_with_another_value_finds_nothing), T(ls_json_is_one_object_per_line),
       T(ls_of_nothing_is_silent_in_a_pipe), T(ls_survives_specs_that_are_no_objects),
       T(show_tells_all), T(show_says_what_a_rootless_sandbox_lacks), T(show_json_is_one_object),
       T(show_says_why_a_sandbox_is_lost), T(show_finds_a_loss_that_the_catalog_does_not_know_yet),
       T(an_unknown_sandbox_is_5), T(ps_prints_what_runs_and_nothing_that_steers),
       T(ps_json_has_numbers), T(kill_ends_the_warden_then_files_then_the_row),
       T(kill_removes_what_a_lost_one_left), T(kill_waits_for_a_lock_that_is_held_for_a_moment),
       T(kill_goes_on_after_a_failure_and_keeps_the_first_code),
       T(kill_of_one_sandbox_by_two_names_is_one_act), T(kill_wants_to_know_whom),
       T(kill_all_with_a_name_is_a_mistake), T(kill_all_does_not_ask_without_a_terminal),
       T(kill_dry_run_ends_nothing), T(kill_all_asks_on_a_terminal_and_takes_no),
       T(kill_all_asks_on_a_terminal_and_takes_yes), T(kill_json_mixes_results_and_errors),
       T(gc_keeps_the_lost), T(gc_lost_counts_what_it_freed), T(settle_is_quiet),
       T(settle_takes_an_id), T(a_state_that_cannot_be_opened_is_said))
