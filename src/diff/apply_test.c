/* SPDX-License-Identifier: Apache-2.0 */
/* Applying, cut off before each of its steps. Layers are plain directories with whiteouts. */
#include "diff/apply.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/io.h"
#include "sys/rmtree.h"
#include "t.h"

static char top[64];

static void sh(const char *script)
{
	char cmd[4096];

	CHECK(snprintf(cmd, sizeof cmd, "cd %s && umask 022 && set -e && %s", top, script) <
	      (int)sizeof cmd);
	CHECK(system(cmd) == 0);
}

static void whiteout(const char *path)
{
	char full[256];

	(void)snprintf(full, sizeof full, "%s/upper/%s", top, path);
	CHECK(mknod(full, S_IFCHR | 0600, makedev(0, 0)) == 0);
}

static void begin(void)
{
	/* In memory where possible: each run syncs. */
	(void)snprintf(top, sizeof top, "%s/cay-apply-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(top));
}

static void end(void)
{
	char *slash = strrchr(top, '/');
	int fd;

	*slash = '\0';
	fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && rmtree_at(fd, slash + 1) == 0);
	(void)close(fd);
}

/* Something of every kind. */
static void make_trees(void)
{
	sh("mkdir host upper && cd host && mkdir -p keep gone/deep file2dir.d && echo old > change && "
	   "echo bye > delete && echo x > gone/deep/x && echo y > gone/y && echo f > to_dir && "
	   "mkdir to_file && echo in > to_file/in && ln -s change link && mkdir mode && echo k > "
	   "keep/k && echo link > to_link");
	sh("cd upper && echo new > change && mkdir -p to_dir/sub && echo a > to_dir/sub/a && echo "
	   "file > to_file && chmod 755 to_file && ln -s other link && mkdir -p mode new/n && chmod "
	   "700 mode && echo n > new/n/n && echo add > added && ln -s x to_link && : > empty");
	whiteout("delete");
	whiteout("gone");
}

/* Names, kinds, modes and contents of a tree, as text. */
static void describe(const char *dir, char *out, size_t size)
{
	char cmd[512];
	FILE *f;
	size_t n;

	(void)snprintf(
		cmd, sizeof cmd,
		"cd %s/%s && find . -name .cay-apply -prune -o -printf '%%p %%y %%m %%l\\n' | sort; "
		"find . -name .cay-apply -prune -o -type f -print0 | sort -z | xargs -0 -r "
		"md5sum",
		top, dir);
	f = popen(cmd, "re");
	CHECK(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	CHECK(pclose(f) == 0 && n > 0 && n < size - 1);
}

struct fixture {
	struct stack base, now;
	int host;
	struct diff d;
};

static int open_dir(const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s", top, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void setup(struct fixture *f)
{
	const struct diff_scope all = { 0 };
	struct err e;

	*f = (struct fixture){ .base.userxattr = true, .now.userxattr = true };
	f->host = open_dir("host");
	CHECK(stack_add(&f->now, (struct stack_layer){ .fd = open_dir("upper") }) == 0);
	CHECK(stack_add(&f->now, (struct stack_layer){ .fd = open_dir("host") }) == 0);
	CHECK(stack_add(&f->base, (struct stack_layer){ .fd = open_dir("host") }) == 0);
	CHECK(diff_compare(&f->base, &f->now, &all, &f->d, &e) == 0);
}

static void teardown(struct fixture *f)
{
	diff_done(&f->d);
	stack_done(&f->base);
	stack_done(&f->now);
	(void)close(f->host);
}

static const struct apply_rules calm = { .base_ns = UINT64_MAX };

static void crash(void *ctx, int step)
{
	if (step == *(int *)ctx)
		_exit(42);
}

/* In a process of its own: 42 where it was cut off, 0 where it came to its end. */
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
		apply_init(&a, f.host, "box");
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

/* settle: resume or undo. True where there was a journal. */
static bool settle(int (*how)(struct apply *a, struct err *e), int crash_at)
{
	struct apply a;
	struct err e = { 0 };
	int host = open_dir("host"), r;
	bool found;

	apply_init(&a, host, "");
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
	begin();
	make_trees();
	describe("host", before, sizeof before);
}

static void all_of_it_is_taken_over(void)
{
	struct stat st;
	char path[128];

	fresh();
	CHECK(apply_until(-1) == 0);
	sh("cd host && test new = $(cat change) && test ! -e delete && test ! -e gone && test -d to_dir/sub "
	   "&& test -x to_file && test other = $(readlink link) && test n = $(cat new/n/n) && "
	   "test -f empty && test k = $(cat keep/k) && test ! -e .cay-apply");
	(void)snprintf(path, sizeof path, "%s/host/mode", top);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
	end();
}

/* how: what follows the crash. resumed: what the tree must be then. */
static void crash_everywhere(int (*how)(struct apply *a, struct err *e), bool resumed, bool twice)
{
	int code, journals = 0;

	fresh();
	CHECK(apply_until(-1) == 0);
	describe("host", after, sizeof after);
	end();
	for (int step = 0;; step++) {
		bool found;

		fresh();
		code = apply_until(step);
		if (code == 0) {
			end();
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
		end();
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
	apply_init(a, f->host, "box");
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
	end();
}

/* Somebody edits a file between the plan and the exchange. */
static void edit_now(void *ctx, int step)
{
	if (step == *(int *)ctx)
		sh("echo edited by somebody >> host/change");
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
	sh("cd host && tail -n1 change | grep -q edited && test -e delete && test -e gone/deep/x && test "
	   "! -e added && test ! -e .cay-apply && test in = $(cat to_file/in)");
	apply_done(&a);
	teardown(&f);
	end();
}

/* A directory of the target becomes a link out of it while we are at work. */
static void swap_dir(void *ctx, int step)
{
	if (step == *(int *)ctx)
		sh("mkdir -p outside/n && mv host/sub host/sub.old && ln -s ../outside host/sub");
}

static void a_link_put_in_the_way_leads_nowhere(void)
{
	for (int step = 0; step < 12; step++) {
		struct fixture f;
		struct apply a;
		struct err e = { 0 };
		int r;

		begin();
		sh("mkdir -p host/sub/n upper/sub/n && echo 1 > host/sub/n/a && echo 2 > upper/sub/n/a && "
		   "echo 3 > upper/sub/n/b && echo 4 > upper/sub/c");
		plan_of(&f, &a, &calm);
		a.before = swap_dir;
		a.ctx = &step;
		r = apply_run(&a, &f.d, &calm, &e);
		sh("test ! -d outside || test -z \"$(find outside -type f)\"");
		CHECK(r == 0 || e.kind == ERR_CONFLICT);
		apply_done(&a);
		teardown(&f);
		end();
	}
}

static void special_files_and_git_hooks_are_not_taken(void)
{
	struct fixture f;
	struct apply a;

	begin();
	sh("mkdir -p host upper/.git/hooks upper/.git/objects/ab upper/sub && echo evil > "
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
	end();
}

static void a_journal_with_a_path_that_leads_out_is_refused(void)
{
	static const char *const paths[] = { "../x", "/etc/x", "a/../../x", "a//b", "" };

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char script[256];
		struct apply a;
		struct err e = { 0 };
		int host;

		begin();
		(void)snprintf(
			script, sizeof script,
			"mkdir -p host/.cay-apply && printf 'cay-apply 1\\0box\\0d 0 0 0 0 0 0 0 "
			"493\\0%s\\0end\\0' > host/.cay-apply/journal",
			paths[i]);
		sh(script);
		host = open_dir("host");
		apply_init(&a, host, "");
		CHECK(apply_lock(&a, &e) < 0);
		apply_done(&a);
		(void)close(host);
		end();
	}
}

T_MAIN(T(all_of_it_is_taken_over), T(a_crash_anywhere_can_be_finished),
       T(a_crash_anywhere_can_be_undone), T(a_crash_while_finishing_can_be_finished),
       T(a_crash_while_undoing_can_be_undone), T(what_changed_on_the_host_is_refused),
       T(a_change_in_the_last_moment_undoes_everything), T(a_link_put_in_the_way_leads_nowhere),
       T(special_files_and_git_hooks_are_not_taken),
       T(a_journal_with_a_path_that_leads_out_is_refused))
