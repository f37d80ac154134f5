/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which changes are left out because a host tool would act on them. */
#include "diff/guard.h"

#include "t_tree.h"

enum { TAKEN = -1 };

static struct stack base, now;
static struct diff d;
static struct apply a;
static int host;

/* script makes host/ and upper/; meanwhile runs between the comparison and the plan. */
static void plan_while(const char *script, const char *meanwhile, bool git_config)
{
	const struct apply_rules rules = { .base_ns = UINT64_MAX, .git_config = git_config };
	const struct diff_scope all = { 0 };
	struct err e;

	t_tree_begin();
	t_sh("mkdir host upper");
	t_sh(script);
	base = now = (struct stack){ .userxattr = true };
	host = t_open("host");
	CHECK(stack_add(&now, (struct stack_layer){ .fd = t_open("upper") }) == 0);
	CHECK(stack_add(&now, (struct stack_layer){ .fd = t_open("host") }) == 0);
	CHECK(stack_add(&base, (struct stack_layer){ .fd = t_open("host") }) == 0);
	CHECK(diff_compare(&base, &now, &all, &d, &e) == 0);
	if (meanwhile)
		t_sh(meanwhile);
	apply_init(&a, host, FD_NONE, "box");
	CHECK(apply_plan(&a, &d, &rules, &e) == 0);
	CHECK(a.nrefused == 0);
}

static void plan(const char *script, bool git_config)
{
	plan_while(script, NULL, git_config);
}

static void done(void)
{
	apply_done(&a);
	diff_done(&d);
	stack_done(&base);
	stack_done(&now);
	(void)close(host);
	t_tree_end();
}

/* Why a path was left out, or TAKEN; fails if it is in neither list. */
static int fate(const char *path)
{
	for (size_t i = 0; i < a.nleft_out; i++)
		if (strcmp(a.left_out[i].path, path) == 0)
			return (int)a.left_out[i].why;
	for (size_t i = 0; i < a.n; i++)
		if (strcmp(a.steps[i].path, path) == 0)
			return TAKEN;
	printf("# %s: neither taken nor left out\n", path);
	return -2;
}

static void only_history_of_a_repository_is_taken(void)
{
	static const struct {
		const char *path;
		int why;
	} cases[] = {
		{ ".git", TAKEN },
		{ ".git/HEAD", TAKEN },
		{ ".git/objects/ab/cd", TAKEN },
		{ ".git/refs/heads/main", TAKEN },
		{ ".git/logs/HEAD", TAKEN },
		{ ".git/COMMIT_EDITMSG", TAKEN },
		{ ".git/config", APPLY_GUARDED },
		{ ".git/hooks/pre-commit", APPLY_GUARDED },
		{ ".git/info/attributes", APPLY_GUARDED },
		{ ".git/objects/info/alternates", APPLY_GUARDED },
		{ ".git/objects/INFO/alternates", APPLY_GUARDED },
		{ ".git/modules/m/config", APPLY_GUARDED },
		{ ".git/worktrees/w/gitdir", APPLY_GUARDED },
		{ ".git/commondir", APPLY_GUARDED },
		{ ".git/rebase-merge/git-rebase-todo", APPLY_GUARDED },
		{ ".git/refs/.git/config", APPLY_GUARDED },
		{ "deep/sub/.GiT/config", APPLY_GUARDED },
		{ "deep/sub/.GiT/HEAD", TAKEN },
		{ "deep/.git./config", APPLY_GUARDED },
		{ "git~1/hooks/update", APPLY_GUARDED },
		{ "n/.g\xe2\x80\x8cit/config", APPLY_GUARDED },
		{ ".HG/hgrc", APPLY_OTHER_TOOL },
		{ ".hg/hgrc", APPLY_OTHER_TOOL },
		{ "x/.jj/repo/config.toml", APPLY_OTHER_TOOL },
		{ "_darcs/prefs/defaults", APPLY_OTHER_TOOL },
		{ "config", TAKEN },
		{ "src/hooks/useState.js", TAKEN },
		{ ".git/objects/info./alternates", APPLY_GUARDED },
		{ ".cay-apply/n0", APPLY_OWN },
	};
	char script[4096] = "cd upper";

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = strlen(script);
		const char *slash = strrchr(cases[i].path, '/');

		if (strcmp(cases[i].path, ".git") == 0)
			continue;
		CHECK(snprintf(script + n, sizeof script - n, " && mkdir -p './%.*s' && echo > %s",
			       slash ? (int)(slash - cases[i].path) : 0, cases[i].path,
			       cases[i].path) < (int)(sizeof script - n));
	}
	plan(script, false);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int got = fate(cases[i].path);

		if (got != cases[i].why)
			printf("# %s: %d\n", cases[i].path, got);
		CHECK(got == cases[i].why);
	}
	done();
}

static void a_link_in_git_is_never_taken(void)
{
	const char *script =
		"mkdir -p host/.git/refs host/sub && echo x > host/.git/refs/r && "
		"ln -s /etc/passwd host/.git/ORIG_HEAD && echo gitdir: x > host/sub/.git && "
		"cd upper && mkdir -p .git/logs sub/.git/objects && "
		"ln -s /etc/passwd .git/COMMIT_EDITMSG && ln -s ../../x .git/logs/HEAD && "
		"ln -s /etc .git/refs && echo 1 > .git/ORIG_HEAD && echo o > sub/.git/objects/o && "
		"ln -s elsewhere .git/hooks && mkdir n && ln -s /other n/.git";

	for (int config = 0; config < 2; config++) {
		plan(script, config);
		CHECK(fate(".git/COMMIT_EDITMSG") == APPLY_GIT_LINK);
		CHECK(fate(".git/logs/HEAD") == APPLY_GIT_LINK);
		CHECK(fate(".git/refs") == APPLY_GIT_LINK);
		CHECK(fate(".git/refs/r") == APPLY_BELOW);	 /* not deleted either */
		CHECK(fate(".git/ORIG_HEAD") == APPLY_GIT_LINK); /* the host's file is a link */
		CHECK(fate(".git/hooks") == APPLY_GIT_LINK);
		CHECK(fate("n/.git") == APPLY_GIT_LINK);
		/* The host's .git is a file that names another repository. */
		CHECK(fate("sub/.git") == APPLY_GIT_LINK);
		CHECK(fate("sub/.git/objects/o") == APPLY_GIT_LINK);
		done();
	}
}

#define BARE "mkdir -p b/objects b/refs b/hooks && echo h > b/HEAD && echo c > b/config && "

static void a_bare_repository_does_not_arrive(void)
{
	plan("cd upper && " BARE "echo e > b/hooks/update && echo r > b/README", false);
	CHECK(fate("b/HEAD") == APPLY_GIT_BARE && fate("b/config") == APPLY_GIT_BARE);
	CHECK(fate("b/hooks/update") == APPLY_GIT_BARE && fate("b/objects") == APPLY_GIT_BARE);
	CHECK(fate("b/README") == TAKEN);
	done();
	/* With commondir, git needs neither objects nor refs beside it. */
	plan("mkdir upper/b && cd upper/b && echo h > HEAD && echo c > config && echo .. > commondir",
	     false);
	CHECK(fate("b/HEAD") == APPLY_GIT_BARE && fate("b/config") == APPLY_GIT_BARE);
	done();
	plan("cd upper && " BARE "echo e > b/hooks/update", true);
	CHECK(fate("b/HEAD") == TAKEN && fate("b/hooks/update") == TAKEN);
	done();
}

/* config arrived earlier as a plain file; what would make it a repository is left out. */
static void a_bare_repository_in_other_letters_does_not_arrive(void)
{
	plan("mkdir -p upper/b && cd upper/b && mkdir Objects REFS hooks-not && echo h > Head && "
	     "echo c > CONFIG && echo d > readme && mkdir Objects/aa && echo o > Objects/aa/o",
	     false);
	CHECK(fate("b/Head") == APPLY_GIT_BARE && fate("b/CONFIG") == APPLY_GIT_BARE);
	CHECK(fate("b/Objects/aa/o") == APPLY_GIT_BARE && fate("b/readme") == TAKEN);
	done();
	/* Only two of the three: a plain directory. */
	plan("mkdir -p upper/b/Objects && echo h > upper/b/Head && echo c > upper/b/CONFIG", false);
	CHECK(fate("b/Head") == TAKEN && fate("b/CONFIG") == TAKEN);
	done();
}

static void a_bare_repository_does_not_arrive_in_parts(void)
{
	plan("mkdir -p host/b upper/b/objects upper/b/refs && echo c > host/b/config && "
	     "echo h > upper/b/HEAD",
	     false);
	CHECK(fate("b/HEAD") == APPLY_GIT_BARE && fate("b/objects") == APPLY_GIT_BARE);
	done();
	plan("mkdir -p host/b/refs upper/b/objects && echo c > host/b/config && echo h > host/b/HEAD",
	     false);
	CHECK(fate("b/objects") == APPLY_GIT_BARE);
	done();
}

/* A process in the sandbox hides a part, and would restore it before the copy. */
static void a_bare_repository_that_hides_from_the_plan_does_not_arrive(void)
{
	plan_while("cd upper && " BARE "echo e > b/hooks/update && echo o > b/objects/o && "
		   "echo r > b/refs/r",
		   "mv upper/b/objects upper/b/.hidden", false);
	CHECK(fate("b/HEAD") == APPLY_GIT_BARE && fate("b/config") == APPLY_GIT_BARE);
	CHECK(fate("b/hooks/update") == APPLY_GIT_BARE && fate("b/objects") == APPLY_GIT_BARE);
	CHECK(fate("b/refs/r") == APPLY_GIT_BARE);
	done();
}

static void of_a_bare_repository_of_the_host_history_is_taken(void)
{
	plan("cd host && " BARE "cd ../upper && mkdir -p b/refs/heads b/hooks && "
	     "echo r > b/refs/heads/x && echo h > b/HEAD && echo evil > b/config && "
	     "echo evil > b/hooks/update && ln -s /x b/packed-refs",
	     false);
	CHECK(fate("b/refs/heads/x") == TAKEN);
	CHECK(fate("b/config") == APPLY_GUARDED && fate("b/hooks/update") == APPLY_GUARDED);
	CHECK(fate("b/packed-refs") == APPLY_GIT_LINK);
	done();
	/* The directory itself is a repository: --dir repo/.git. */
	plan("cd host && mkdir objects refs && echo h > HEAD && cd ../upper && echo c > config && "
	     "mkdir refs && echo r > refs/r",
	     false);
	CHECK(fate("config") == APPLY_GUARDED && fate("refs/r") == TAKEN);
	done();
}

/* Makes .git/index. */
#define EMPTY_INDEX \
	"printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\0' > e && sha1sum e | cut -d' ' -f1 | " \
	"sed 's/../\\\\x&/g' > s && cat e > .git/index && " \
	"/usr/bin/printf \"$(cat s)\" >> .git/index && rm s e && "

static void an_index_is_taken_only_when_its_paths_are_harmless(void)
{
	plan("mkdir -p upper/.git upper/x/.git && cd upper && " EMPTY_INDEX
	     "echo evil > x/.git/index && echo plain > index",
	     false);
	CHECK(fate(".git/index") == TAKEN && fate("index") == TAKEN);
	CHECK(fate("x/.git/index") == APPLY_GIT_INDEX);
	done();
}

/* With SHA-256, git reads different paths from the same bytes. */
static void an_index_for_a_repository_with_sha256_is_not_taken(void)
{
	for (int sha256 = 0; sha256 < 2; sha256++) {
		plan(sha256 ? "mkdir -p host/.git upper/.git && "
			      "echo '[extensions] objectFormat = sha256' > host/.git/config && "
			      "cd upper && " EMPTY_INDEX "true"
			    : "mkdir -p host/.git upper/.git && echo '[core]' > host/.git/config && "
			      "cd upper && " EMPTY_INDEX "true",
		     false);
		CHECK(fate(".git/index") == (sha256 ? APPLY_GIT_INDEX : TAKEN));
		done();
	}
}

T_MAIN(T(only_history_of_a_repository_is_taken), T(a_link_in_git_is_never_taken),
       T(a_bare_repository_does_not_arrive), T(a_bare_repository_in_other_letters_does_not_arrive),
       T(a_bare_repository_does_not_arrive_in_parts),
       T(a_bare_repository_that_hides_from_the_plan_does_not_arrive),
       T(of_a_bare_repository_of_the_host_history_is_taken),
       T(an_index_is_taken_only_when_its_paths_are_harmless),
       T(an_index_for_a_repository_with_sha256_is_not_taken))
