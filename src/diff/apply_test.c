/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts apply before each of its steps. Layers are plain directories with whiteouts. */
#include "diff/apply.h"

#include "base/clock.h"
#include "t_tree.h"

/* Entries of every kind. */
static void make_trees(void)
{
	static const struct t_node nodes[] = {
		{ 'd', "host", 0, 0 },
		{ 'd', "host/keep", 0, 0 },
		{ 'f', "host/keep/k", "k\n", 0 },
		{ 'd', "host/gone", 0, 0 },
		{ 'd', "host/gone/deep", 0, 0 },
		{ 'f', "host/gone/deep/x", "x\n", 0 },
		{ 'f', "host/gone/y", "y\n", 0 },
		{ 'f', "host/change", "old\n", 0 },
		{ 'f', "host/delete", "bye\n", 0 },
		{ 'f', "host/to_dir", "f\n", 0 },
		{ 'd', "host/to_file", 0, 0 },
		{ 'f', "host/to_file/in", "in\n", 0 },
		{ 'l', "host/link", "change", 0 },
		{ 'd', "host/mode", 0, 0 },
		{ 'f', "host/to_link", "link\n", 0 },
		{ 'd', "upper", 0, 0 },
		{ 'f', "upper/change", "new\n", 0 },
		{ 'd', "upper/to_dir", 0, 0 },
		{ 'd', "upper/to_dir/sub", 0, 0 },
		{ 'f', "upper/to_dir/sub/a", "a\n", 0 },
		{ 'f', "upper/to_file", "file\n", 0755 },
		{ 'l', "upper/link", "other", 0 },
		{ 'd', "upper/mode", 0, 0700 },
		{ 'd', "upper/new", 0, 0 },
		{ 'd', "upper/new/n", 0, 0 },
		{ 'f', "upper/new/n/n", "n\n", 0 },
		{ 'f', "upper/added", "add\n", 0 },
		{ 'l', "upper/to_link", "x", 0 },
		{ 'f', "upper/empty", "", 0 },
		{ 'w', "upper/delete", 0, 0 },
		{ 'w', "upper/gone", 0, 0 },
	};

	t_plant(nodes, sizeof nodes / sizeof *nodes);
}

static void describe(const char *dir, char *out, size_t size)
{
	t_describe(dir, ".cay-apply", out, size);
}

struct fixture {
	struct stack base, now;
	int host, state;
	struct diff d;
};

static void setup(struct fixture *f)
{
	const struct diff_scope all = { 0 };
	struct err e;

	*f = (struct fixture){ .base.userxattr = true, .now.userxattr = true };
	f->host = t_open("host");
	(void)mkdir(t_path("state"), 0700);
	f->state = t_open("state");
	CHECK(stack_add(&f->now, (struct stack_layer){ .fd = t_open("upper") }) == 0);
	CHECK(stack_add(&f->now, (struct stack_layer){ .fd = t_open("host") }) == 0);
	CHECK(stack_add(&f->base, (struct stack_layer){ .fd = t_open("host") }) == 0);
	CHECK(diff_compare(&f->base, &f->now, &all, &f->d, &e) == 0);
}

static void teardown(struct fixture *f)
{
	diff_done(&f->d);
	stack_done(&f->base);
	stack_done(&f->now);
	(void)close(f->host);
	(void)close(f->state);
}

static const struct apply_rules calm = { .base_ns = UINT64_MAX };

static void crash(void *ctx, int step)
{
	if (step == *(int *)ctx)
		_exit(42);
}

/* Runs in a child: 42 if it was interrupted, 0 if it finished. */
static int apply_until(int step)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct fixture f;
		struct apply a;
		struct err e = { 0 };

		setup(&f);
		apply_init(&a, f.host, f.state, "box");
		a.before = crash;
		a.ctx = &step;
		if (apply_plan(&a, &f.d, &calm, &e) < 0 || a.nrefused ||
		    apply_run(&a, &f.d, &calm, &e) < 0) {
			printf("# %s\n", e.msg);
			fflush(stdout);
			_exit(1);
		}
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42);
	return WEXITSTATUS(status);
}

static char before[16384], after[16384], now[16384];

/* how: resume or undo. True if there was a journal. */
static bool settle(int (*how)(struct apply *a, struct err *e), int crash_at)
{
	struct apply a;
	struct err e = { 0 };
	int host = t_open("host"), state = t_open("state"), r;
	bool found;

	apply_init(&a, host, state, "");
	CHECK(apply_lock(&a, &e) == 0);
	found = a.has_journal;
	if (found) {
		CHECK(strcmp(a.id, "box") == 0);
		a.before = crash;
		a.ctx = &crash_at;
		r = how(&a, &e);
		if (r < 0)
			printf("# %s\n", e.msg);
		CHECK(r == 0);
	}
	apply_done(&a);
	(void)close(host);
	(void)close(state);
	return found;
}

static void settle_until(int (*how)(struct apply *a, struct err *e), int step)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)settle(how, step);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
}

static void fresh(void)
{
	t_tree_begin();
	make_trees();
	describe("host", before, sizeof before);
}

static void all_of_it_is_taken_over(void)
{
	struct stat st;
	char path[128];

	fresh();
	CHECK(apply_until(-1) == 0);
	t_sh("cd host && test new = $(cat change) && test ! -e delete && test ! -e gone && test -d to_dir/sub "
	     "&& test -x to_file && test other = $(readlink link) && test n = $(cat new/n/n) && "
	     "test -f empty && test k = $(cat keep/k) && test ! -e .cay-apply");
	(void)snprintf(path, sizeof path, "%s/host/mode", t_top);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
	t_tree_end();
}

/* how: what follows the crash. resumed: the expected tree afterwards. */
static void crash_everywhere(int (*how)(struct apply *a, struct err *e), bool resumed, bool twice)
{
	int code, journals = 0;

	fresh();
	CHECK(apply_until(-1) == 0);
	describe("host", after, sizeof after);
	t_tree_end();
	for (int step = 0;; step++) {
		bool found;

		fresh();
		code = apply_until(step);
		if (code == 0) {
			t_tree_end();
			break;
		}
		if (twice)
			settle_until(how, step / 2);
		found = settle(how, -1);
		journals += found;
		describe("host", now, sizeof now);
		if (found)
			CHECK_STR(now, resumed ? after : before);
		else
			CHECK(strcmp(now, before) == 0 || strcmp(now, after) == 0);
		t_tree_end();
	}
	CHECK(journals > 10);
}

static void a_crash_anywhere_can_be_finished(void)
{
	crash_everywhere(apply_resume, true, false);
}

static void a_crash_anywhere_can_be_undone(void)
{
	crash_everywhere(apply_undo, false, false);
}

static void a_crash_while_finishing_can_be_finished(void)
{
	crash_everywhere(apply_resume, true, true);
}

static void a_crash_while_undoing_can_be_undone(void)
{
	crash_everywhere(apply_undo, false, true);
}

static void plan_of(struct fixture *f, struct apply *a, const struct apply_rules *rules)
{
	struct err e;

	setup(f);
	apply_init(a, f->host, f->state, "box");
	CHECK(apply_plan(a, &f->d, rules, &e) == 0);
}

static void what_changed_on_the_host_is_refused(void)
{
	struct apply_rules rules = { .base_ns = 1 };
	struct fixture f;
	struct apply a;

	fresh();
	plan_of(&f, &a, &rules);
	CHECK(a.nrefused >= 5);
	for (size_t i = 0; i < a.nrefused; i++)
		CHECK(a.refused[i].why == APPLY_HOST_CHANGED);
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

/* Edits a file between the plan and the exchange. */
static void edit_now(void *ctx, int step)
{
	if (step == *(int *)ctx)
		t_sh("echo edited by somebody >> host/change");
}

static void a_change_in_the_last_moment_undoes_everything(void)
{
	struct fixture f;
	struct apply a;
	struct err e = { 0 };
	int step = 12;

	fresh();
	plan_of(&f, &a, &calm);
	a.before = edit_now;
	a.ctx = &step;
	CHECK(apply_run(&a, &f.d, &calm, &e) < 0 && e.kind == ERR_CONFLICT);
	t_sh("cd host && tail -n1 change | grep -q edited && test -e delete && test -e gone/deep/x && test "
	     "! -e added && test ! -e .cay-apply && test in = $(cat to_file/in)");
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

/* Also recreates a deleted name: undo cannot restore the deleted file. */
static void edit_and_take_back(void *ctx, int step)
{
	if (step == *(int *)ctx)
		t_sh("echo edited by somebody >> host/change; test ! -e host/delete && echo mine > "
		     "host/delete");
}

static void an_undo_that_fails_tells_both_reasons_once(void)
{
	struct fixture f;
	struct apply a;
	struct err e = { 0 };
	int step = 12;

	fresh();
	plan_of(&f, &a, &calm);
	a.before = edit_and_take_back;
	a.ctx = &step;
	CHECK(apply_run(&a, &f.d, &calm, &e) < 0 && e.kind == ERR_CONFLICT);
	CHECK_STR(e.msg, "'change' changed on the host just now; then undoing it failed: 'delete' "
			 "changed on the host just now");
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

/* The stage holds the only copies of the running apply's files. */
static void one_that_is_at_work_is_left_alone(void)
{
	struct fixture f;
	struct apply a, other;
	struct err e = { 0 };

	fresh();
	plan_of(&f, &a, &calm);
	apply_init(&other, f.host, f.state, "other");
	CHECK(apply_lock(&other, &e) == 0);
	t_sh("echo old > host/.cay-apply/o0");
	CHECK(apply_run(&a, &f.d, &calm, &e) < 0 && e.kind == ERR_CONFLICT);
	t_sh("cd host && test old = $(cat .cay-apply/o0) && test -e delete && test ! -e added");
	apply_done(&other);
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

/* Like cay run --apply, which does not finish interrupted runs first. */
static void one_that_was_cut_off_can_still_be_undone_after_another(void)
{
	struct fixture f;
	struct apply a;
	struct err e = { 0 };

	fresh();
	CHECK(apply_until(14) == 42);
	t_sh("test -e host/.cay-apply/journal");
	setup(&f);
	apply_init(&a, f.host, f.state, "another");
	CHECK(apply_plan(&a, &f.d, &calm, &e) == 0);
	CHECK(apply_run(&a, &f.d, &calm, &e) < 0 && e.kind == ERR_CONFLICT);
	apply_done(&a);
	teardown(&f);
	CHECK(settle(apply_undo, -1));
	describe("host", now, sizeof now);
	CHECK_STR(now, before);
	t_tree_end();
}

/* Replaces a directory of the target with a link that leads outside, during the run. */
static void swap_dir(void *ctx, int step)
{
	if (step == *(int *)ctx)
		t_sh("mkdir -p outside/n && mv host/sub host/sub.old && ln -s ../outside host/sub");
}

static void a_link_put_in_the_way_leads_nowhere(void)
{
	for (int step = 0; step < 12; step++) {
		struct fixture f;
		struct apply a;
		struct err e = { 0 };
		int r;

		t_tree_begin();
		t_sh("mkdir -p host/sub/n upper/sub/n && echo 1 > host/sub/n/a && echo 2 > upper/sub/n/a && "
		     "echo 3 > upper/sub/n/b && echo 4 > upper/sub/c");
		plan_of(&f, &a, &calm);
		a.before = swap_dir;
		a.ctx = &step;
		r = apply_run(&a, &f.d, &calm, &e);
		t_sh("test ! -d outside || test -z \"$(find outside -type f)\"");
		CHECK(r == 0 || e.kind == ERR_CONFLICT);
		apply_done(&a);
		teardown(&f);
		t_tree_end();
	}
}

static void special_files_and_git_hooks_are_not_taken(void)
{
	struct fixture f;
	struct apply a;

	t_tree_begin();
	t_sh("mkdir -p host upper/.git/hooks upper/.git/objects/ab upper/sub && echo evil > "
	     "upper/.git/hooks/post-checkout && echo c > upper/.git/config && echo o > "
	     "upper/.git/objects/ab/cd && echo r > upper/.git/HEAD && mkfifo upper/pipe && "
	     "echo 'gitdir: /x' > upper/sub/.git && echo a > upper/.git/objects/ab/info && "
	     "mkdir upper/.cay-apply && echo j > upper/.cay-apply/journal");
	plan_of(&f, &a, &calm);
	CHECK(a.nrefused == 1 && a.refused[0].why == APPLY_SPECIAL);
	for (size_t i = 0; i < a.n; i++)
		CHECK(!strstr(a.steps[i].path, "hooks/") && !strstr(a.steps[i].path, "config") &&
		      strcmp(a.steps[i].path, "sub/.git") != 0 &&
		      !strstr(a.steps[i].path, ".cay-apply"));
	CHECK(a.nleft_out == 6);
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

static void what_is_half_renamed_is_refused(void)
{
	struct fixture f;
	struct apply a;

	t_tree_begin();
	t_sh("mkdir -p host/d upper/d/.cay-mv.7/0 && echo x > upper/d/.cay-mv.7/0/f && "
	     "echo y > upper/d/not.cay-mv.7");
	plan_of(&f, &a, &calm);
	CHECK(a.nrefused == 3 && a.refused[0].why == APPLY_RENAMING);
	CHECK(a.n == 1 && strstr(a.steps[0].path, "not.cay"));
	apply_done(&a);
	teardown(&f);
	t_tree_end();
}

/* printf(1) would read a digit after \0 as part of the number. */
#define NONCE "fedcba9876543210fedcba9876543210"

/* Records the current journal in the state directory. */
static void note_journal(void)
{
	char body[4096], hash[SHA256_SIZE];
	FILE *f = fopen(t_path("host/.cay-apply/journal"), "re");
	size_t n = f ? fread(body, 1, sizeof body, f) : 0;

	CHECK(f && fclose(f) == 0);
	sha256(body, n, (uint8_t *)hash);
	t_sh("mkdir state/applying");
	f = fopen(t_path("state/applying/" NONCE), "we");
	CHECK(f && fwrite(hash, 1, sizeof hash, f) == sizeof hash && fclose(f) == 0);
}

/*
 * True if a journal with one step on this path is accepted, after `then` has changed the file.
 * known: the state directory knew the journal before that.
 */
static bool takes_up_journal(const char *path, bool known, const char *then, struct err *e)
{
	char script[512];
	struct apply a;
	int host, state, r;

	t_tree_begin();
	CHECK(snprintf(script, sizeof script,
		       "mkdir -p state host/.cay-apply && cd host/.cay-apply && printf 'cay-apply "
		       "2\\0" NONCE "\\0box\\0d 0 0 0 0 0 0 0 493\\0%s\\0end\\0' > journal",
		       path) < (int)sizeof script);
	t_sh(script);
	if (known)
		note_journal();
	CHECK(snprintf(script, sizeof script, "cd host/.cay-apply && %s", then) <
	      (int)sizeof script);
	t_sh(script);
	host = t_open("host");
	state = t_open("state");
	apply_init(&a, host, state, "");
	r = apply_lock(&a, e);
	apply_done(&a);
	(void)close(host);
	(void)close(state);
	t_tree_end();
	return r == 0;
}

static void a_journal_with_a_path_that_leads_out_is_refused(void)
{
	static const char *const paths[] = { "../x", "/etc/x", "a/../../x", "a//b", "" };

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct err e = { 0 };

		CHECK(!takes_up_journal(paths[i], true, "chmod 600 journal", &e));
	}
}

static void a_journal_that_is_not_ours_is_refused(void)
{
	static const struct {
		const char *made_by;
		bool known, ours;
	} cases[] = {
		{ "chmod 600 journal", true, true },
		{ "chmod 600 journal", false, false },
		{ "sed -i s/sub/.git/ journal; chmod 600 journal", true, false },
		{ "chmod 644 journal", true, false },
		{ "mv journal j; chmod 600 j; ln -s j journal", true, false },
		{ "chmod 600 journal; ln journal j", true, false },
		{ "rm journal; mkfifo -m 600 journal", true, false },
		{ "sed -i s/493/2541/ journal; chmod 600 journal", true, false }, /* setuid */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = { 0 };

		CHECK(takes_up_journal("sub", cases[i].known, cases[i].made_by, &e) ==
		      cases[i].ours);
		CHECK(cases[i].ours || strcmp(e.code, "apply.foreign") == 0);
	}
}

/* After the crash, a process puts another file into the stage, or replaces ours. */
static void undo_moves_only_the_files_that_it_knows(void)
{
	static const char *const swaps[] = {
		"for f in host/.cay-apply/o*; do echo evil > x; mv x $f; done",
		"for f in host/.cay-apply/n*; do echo evil > x; mv x $f; done",
		"mv host/mode host/mode.old; mkdir host/mode",
	};

	for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
		struct apply a;
		struct err e = { 0 };
		int host, state;

		fresh();
		/* All steps are done; the journal still exists. */
		for (int step = 60;
		     apply_until(step) == 0 || access(t_path("host/.cay-apply/journal"), F_OK) < 0;
		     step--) {
			t_tree_end();
			fresh();
		}
		t_sh("test -e host/.cay-apply/journal");
		t_sh(swaps[i]);
		host = t_open("host");
		state = t_open("state");
		apply_init(&a, host, state, "");
		CHECK(apply_lock(&a, &e) == 0 && a.has_journal);
		CHECK(apply_undo(&a, &e) < 0 && e.kind == ERR_CONFLICT);
		t_sh("! grep -rqs evil host --exclude-dir=.cay-apply");
		apply_done(&a);
		(void)close(host);
		(void)close(state);
		t_tree_end();
	}
}

static void the_note_goes_with_the_journal(void)
{
	fresh();
	CHECK(apply_until(-1) == 0);
	t_sh("test -d state/applying && test -z \"$(ls state/applying)\"");
	t_tree_end();
}

T_MAIN(T(undo_moves_only_the_files_that_it_knows), T(the_note_goes_with_the_journal),
       T(all_of_it_is_taken_over), T(a_crash_anywhere_can_be_finished),
       T(a_crash_anywhere_can_be_undone), T(a_crash_while_finishing_can_be_finished),
       T(a_crash_while_undoing_can_be_undone), T(what_changed_on_the_host_is_refused),
       T(a_change_in_the_last_moment_undoes_everything),
       T(an_undo_that_fails_tells_both_reasons_once), T(one_that_is_at_work_is_left_alone),
       T(one_that_was_cut_off_can_still_be_undone_after_another),
       T(a_link_put_in_the_way_leads_nowhere), T(special_files_and_git_hooks_are_not_taken),
       T(what_is_half_renamed_is_refused), T(a_journal_with_a_path_that_leads_out_is_refused),
       T(a_journal_that_is_not_ours_is_refused))
