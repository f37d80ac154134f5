/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hints.h"

#include "t.h"

static char out[1024];

static void a_code_has_its_hint_with_what_the_error_is_about(void)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_UNAVAILABLE, "no answer");
	(void)err_code(&e, "sandbox.lost", "k3x9");
	hint_text(&e, out, sizeof out);
	CHECK_STR(out, "it was lost; its files are a snapshot: cay snapshots k3x9; remove them "
		       "with: cay kill k3x9");
	hint_text(&e, out, 20);
	CHECK(strlen(out) == 19);
}

static void an_errors_own_hint_goes_first_and_an_unknown_code_has_none(void)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_FAILED, "x");
	(void)err_code(&e, "no.such.code", "%s%n");
	hint_text(&e, out, sizeof out);
	CHECK_STR(out, "");
	(void)err_code(&e, "sandbox.lost", "%s%n");
	hint_text(&e, out, sizeof out);
	CHECK(strstr(out, "cay kill %s%n"));
	(void)err_hint(&e, "do this");
	hint_text(&e, out, sizeof out);
	CHECK_STR(out, "do this");
}

static void a_field_is_named_by_its_option(void)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_INVALID, "'/x': no such directory");
	(void)err_field(&e, "dirs[%d]", 12);
	hint_message(&e, out, sizeof out);
	CHECK_STR(out, "--dir '/x': no such directory");
	(void)err_field(&e, "limits.memory");
	hint_message(&e, out, sizeof out);
	CHECK_STR(out, "--memory '/x': no such directory");
	(void)err_field(&e, "limits");
	hint_message(&e, out, sizeof out);
	CHECK_STR(out, "'/x': no such directory");
}

T_MAIN(T(a_code_has_its_hint_with_what_the_error_is_about),
       T(an_errors_own_hint_goes_first_and_an_unknown_code_has_none),
       T(a_field_is_named_by_its_option))
