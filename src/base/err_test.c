/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>

#include "t.h"

static void set_fills_everything_and_returns_minus_one(void)
{
	struct err e = { .sys = 5, .hint = "old" };

	CHECK(err_set(&e, ERR_NOT_FOUND, "template '%s' not found", "x") == -1);
	CHECK(e.kind == ERR_NOT_FOUND && e.sys == 0);
	CHECK_STR(e.msg, "template 'x' not found");
	CHECK_STR(e.hint, "");
}

static void a_new_error_clears_code_and_about(void)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_CONFLICT, "busy");
	CHECK(err_code(&e, "sandbox.busy", "k3x9") == -1);
	CHECK(err_field(&e, "dirs[%d].path", 3) == -1);
	(void)err_ctx(&e, "snapshot");
	CHECK_STR(e.code, "sandbox.busy");
	CHECK_STR(e.about, "k3x9");
	CHECK_STR(e.field, "dirs[3].path");
	CHECK(e.kind == ERR_CONFLICT);
	(void)err_sys(&e, EIO, "read");
	CHECK(!e.code[0] && !e.about[0] && !e.field[0]);
	(void)err_code(&e, "a.b", NULL);
	CHECK_STR(e.about, "");
}

static void sys_reports_what_failed_and_why(void)
{
	struct err e = { 0 };

	CHECK(err_sys(&e, ENOENT, "cannot open %s", "/x") == -1);
	CHECK(e.kind == ERR_SYS && e.sys == ENOENT);
	CHECK_STR(e.msg, "cannot open /x: No such file or directory");
}

static void context_goes_before_and_keeps_kind_and_hint(void)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_LIMIT, "too many");
	(void)err_hint(&e, "use %d", 3);
	CHECK(err_ctx(&e, "sandbox %s", "a") == -1);
	CHECK_STR(e.msg, "sandbox a: too many");
	CHECK_STR(e.hint, "use 3");
	CHECK(e.kind == ERR_LIMIT);
}

static void long_messages_are_cut_and_terminated(void)
{
	struct err e = { 0 };
	char text[sizeof e.msg + 100];

	for (size_t n = sizeof e.msg - 5; n < sizeof e.msg + 5; n++) {
		memset(text, 'x', sizeof text);
		text[n] = '\0';
		(void)err_sys(&e, EIO, "%s", text);
		CHECK(memchr(e.msg, '\0', sizeof e.msg) != NULL);
		(void)err_ctx(&e, "%s", text);
		CHECK(memchr(e.msg, '\0', sizeof e.msg) != NULL);
		(void)err_ctx(&e, "before");
		CHECK(strncmp(e.msg, "before: xxx", 11) == 0);
		CHECK(strlen(e.msg) == sizeof e.msg - 1);
	}
	(void)err_hint(&e, "%s", text);
	CHECK(strlen(e.hint) == sizeof e.hint - 1);
}

static void every_kind_is_found_by_its_name(void)
{
	for (int k = 0; k < ERR_KIND_COUNT; k++) {
		enum err_kind kind = (enum err_kind)k;

		CHECK(err_kind_of(err_name(kind)) == kind);
		CHECK(err_http(kind) >= 200 && err_http(kind) < 600);
		CHECK((err_exit(kind) == 0) == (kind == ERR_NONE));
	}
	CHECK(err_kind_of("what?") == ERR_FAILED);
}

T_MAIN(T(set_fills_everything_and_returns_minus_one), T(a_new_error_clears_code_and_about),
       T(sys_reports_what_failed_and_why), T(context_goes_before_and_keeps_kind_and_hint),
       T(long_messages_are_cut_and_terminated), T(every_kind_is_found_by_its_name))
