/* SPDX-License-Identifier: Apache-2.0 */
/* Compares stacks of plain directories, and checks the resulting patches. */
#include "diff/compare.h"

#include <sys/xattr.h>

#include "diff/patch.h"
#include "t_tree.h"

static void begin(const char *script)
{
	t_tree_begin();
	t_sh("mkdir lower mid upper");
	t_sh(script);
}

static void mark(const char *path, const char *key, const char *value)
{
	CHECK(lsetxattr(t_path(path), key, value, strlen(value), 0) == 0);
}

struct fixture {
	struct stack base, now;
	struct diff d;
};

static void compare(struct fixture *f, const struct diff_scope *scope)
{
	static const char *const names[] = { "upper", "mid", "lower" };
	struct err e;

	*f = (struct fixture){ .base.userxattr = true, .now.userxattr = true };
	for (int i = 0; i < 3; i++)
		CHECK(stack_add(&f->now, (struct stack_layer){ .fd = t_open(names[i]) }) == 0);
	CHECK(stack_add(&f->base, (struct stack_layer){ .fd = t_open("lower") }) == 0);
	CHECK(diff_compare(&f->base, &f->now, scope, &f->d, &e) == 0);
}

static void end(struct fixture *f)
{
	diff_done(&f->d);
	stack_done(&f->base);
	stack_done(&f->now);
	t_tree_end();
}

/* "A a,M b,…" */
static void is(const struct fixture *f, const char *want)
{
	static const char letters[] = "ADMTR";
	char got[1024] = "";
	size_t n = 0;

	for (size_t i = 0; i < f->d.n; i++)
		n += (size_t)snprintf(got + n, sizeof got - n, "%s%c %s", i ? "," : "",
				      letters[f->d.v[i].kind], f->d.v[i].path);
	CHECK_STR(got, want);
}

static const struct diff_scope all = { 0 };

static void the_topmost_layer_that_has_a_name_decides(void)
{
	struct fixture f;

	begin("echo a > lower/a; echo b > lower/b; echo c > lower/c; echo mid > mid/a; echo top > "
	      "upper/a; echo mid > mid/b; echo only > mid/only; cp -p lower/c upper/c");
	compare(&f, &all);
	is(&f, "M a,M b,A only");
	end(&f);
}

static void whiteouts_hide_what_is_below_them_only(void)
{
	struct fixture f;

	begin("mkdir lower/d; echo x > lower/d/x; echo y > lower/y; echo z > lower/z; echo z > "
	      "upper/z; echo m > mid/m");
	t_whiteout("mid/d");
	t_whiteout("mid/z");
	t_whiteout("upper/m");
	t_whiteout("upper/never");
	compare(&f, &all);
	is(&f, "D d,D d/x");
	end(&f);
}

static void an_opaque_directory_begins_anew(void)
{
	struct fixture f;

	begin("mkdir -p lower/d/e mid/d upper/d; echo x > lower/d/x; echo y > lower/d/e/y; echo k > "
	      "lower/d/k; echo m > mid/d/m; echo k > upper/d/k");
	mark("upper/d", "user.overlay.opaque", "y");
	compare(&f, &all);
	is(&f, "D d/e,D d/e/y,D d/x");
	end(&f);
}

static void marks_of_the_other_kind_of_mount_mean_nothing(void)
{
	struct fixture f;
	struct err e;

	begin("mkdir -p lower/d upper/d; echo x > lower/d/x");
	mark("upper/d", "user.overlay.opaque", "y");
	compare(&f, &all);
	is(&f, "D d/x");
	diff_done(&f.d);
	f.base.userxattr = f.now.userxattr = false;
	CHECK(diff_compare(&f.base, &f.now, &all, &f.d, &e) == 0);
	/* For this kind of mount it is an ordinary attribute. */
	is(&f, "M d");
	CHECK(f.d.v[0].xattr && !f.d.v[0].content && !f.d.v[0].mode);
	end(&f);
}

static void kinds_modes_and_links_are_told_apart(void)
{
	struct fixture f;

	begin("echo f > lower/f; mkdir upper/f; ln -s a lower/l; ln -s b upper/l; echo m > lower/m; cp "
	      "lower/m upper/m; chmod 755 upper/m; mkfifo upper/p; ln -s a lower/s; ln -s a upper/s");
	compare(&f, &all);
	is(&f, "T f,M l,M m,A p");
	CHECK(f.d.v[2].mode && !f.d.v[2].content && f.d.v[1].content);
	end(&f);
}

static void a_scope_leaves_out_what_is_not_in_it(void)
{
	static const char *const paths[] = { "a/b" }, *const skip[] = { "a/b/no" };
	const struct diff_scope scope = { .paths = paths, .npaths = 1, .skip = skip, .nskip = 1 };
	struct fixture f;

	begin("mkdir -p upper/a/b/no upper/a/bb; touch upper/a/b/yes upper/a/b/no/x upper/a/bb/x "
	      "upper/a/x");
	compare(&f, &scope);
	is(&f, "A a/b/yes");
	end(&f);
}

static void renames_are_found_by_content(void)
{
	const struct diff_scope scope = { .renames = true };
	struct fixture f;

	begin("seq 100 > lower/same; seq 200 300 > lower/like; echo other > lower/gone; seq 100 > "
	      "upper/moved; seq 200 299 > upper/alike; echo new > upper/new");
	t_whiteout("upper/same");
	t_whiteout("upper/like");
	t_whiteout("upper/gone");
	compare(&f, &scope);
	is(&f, "R alike,D gone,R moved,A new");
	CHECK(f.d.v[2].percent == 100 && f.d.v[0].percent > 90 && f.d.v[0].percent < 100);
	end(&f);
}

static void a_renamed_directory_is_found_by_what_is_in_it(void)
{
	const struct diff_scope scope = { .renames = true };
	struct fixture f;

	begin("mkdir -p lower/d/s lower/keep upper/e/s upper/keep; seq 100 > lower/d/a; seq 200 300 > "
	      "lower/d/s/b; ln -s x lower/d/l; cp lower/d/a upper/e/a; seq 200 299 > upper/e/s/b; "
	      "ln -s x upper/e/l; echo new > upper/e/n; mkdir upper/other; echo o > upper/other/o");
	t_whiteout("upper/d");
	compare(&f, &scope);
	is(&f, "R e,R e/a,R e/l,A e/n,R e/s,R e/s/b,A other,A other/o");
	CHECK_STR(f.d.v[0].old_path, "d");
	CHECK_STR(f.d.v[4].old_path, "d/s");
	CHECK(!diff_is_implied(&f.d.v[0]) && diff_is_implied(&f.d.v[1]));
	CHECK(diff_is_implied(&f.d.v[4]) && !diff_is_implied(&f.d.v[5]));
	end(&f);
}

static void patch_is(const struct fixture *f, const char *want)
{
	char *out = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&out, &n);
	struct patch_counts counts;
	struct err e;

	CHECK(file);
	for (size_t i = 0; i < f->d.n; i++)
		CHECK(patch_write(file, &f->d, &f->d.v[i], "", &counts, &e) == 0);
	CHECK(fclose(file) == 0);
	CHECK_STR(out, want);
	free(out);
}

static void a_patch_is_as_git_writes_it(void)
{
	struct fixture f;

	begin("printf 'one\\ntwo' > lower/a; printf 'one\\nTWO\\n' > upper/a; : > 'upper/em pty'; printf x "
	      "> \"upper/$(printf 'q\"\\t')\"; ln -s t upper/z");
	compare(&f, &all);
	patch_is(
		&f,
		"diff --git a/a b/a\n"
		"index 9ed40b44250875c2c4532588b014ab45a1799a0f.."
		"879de50b9a967adae6ab5fe536d4ef6e0af21bb1 100644\n"
		"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+TWO\n"
		"diff --git a/em pty b/em pty\nnew file mode 100644\n"
		"index 0000000000000000000000000000000000000000.."
		"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
		"diff --git \"a/q\\\"\\011\" \"b/q\\\"\\011\"\nnew file mode 100644\n"
		"index 0000000000000000000000000000000000000000.."
		"c1b0730e0133447badcfd47fd144e254807b06e1\n"
		"--- /dev/null\n+++ \"b/q\\\"\\011\"\t\n@@ -0,0 +1,1 @@\n+x\n"
		"\\ No newline at end of file\n"
		"diff --git a/z b/z\nnew file mode 120000\n"
		"index 0000000000000000000000000000000000000000.."
		"32f64f4d836716819dc5fa9a1e09a29b428881df\n"
		"--- /dev/null\n+++ b/z\n@@ -0,0 +1,1 @@\n+t\n\\ No newline at end of file\n");
	end(&f);
}

static void binary_files_are_literals_in_both_directions(void)
{
	struct fixture f;
	struct patch_counts counts;
	struct err e;
	char *out = NULL;
	size_t n = 0;
	FILE *file;

	begin("printf 'a\\0b' > lower/bin; printf 'c\\0d' > upper/bin");
	compare(&f, &all);
	file = open_memstream(&out, &n);
	CHECK(file && patch_write(file, &f.d, &f.d.v[0], "", &counts, &e) == 0 &&
	      fclose(file) == 0);
	CHECK(counts.binary && strstr(out, "GIT binary patch\nliteral 3\n") &&
	      strstr(strstr(out, "literal 3\n") + 1, "literal 3\n"));
	free(out);
	end(&f);
}

T_MAIN(T(the_topmost_layer_that_has_a_name_decides), T(whiteouts_hide_what_is_below_them_only),
       T(an_opaque_directory_begins_anew), T(marks_of_the_other_kind_of_mount_mean_nothing),
       T(kinds_modes_and_links_are_told_apart), T(a_scope_leaves_out_what_is_not_in_it),
       T(renames_are_found_by_content), T(a_renamed_directory_is_found_by_what_is_in_it),
       T(a_patch_is_as_git_writes_it), T(binary_files_are_literals_in_both_directions))
