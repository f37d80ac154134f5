/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "t.h"

static void views_compare_by_bytes_nul_included(void)
{
	CHECK(str_eq(STR("a\0b"), STR("a\0b")));
	CHECK(!str_eq(STR("a\0b"), STR("a\0c")));
	CHECK(!str_eq(STR("a"), STR("ab")));
	CHECK(str_eq(STR_NONE, STR("")));
	CHECK(str_is(STR("ab"), "ab") && !str_is(STR("ab\0"), "ab"));
}

static void a_prefix_may_be_empty_or_all(void)
{
	CHECK(str_starts(STR("abc"), STR("")));
	CHECK(str_starts(STR("abc"), STR("abc")));
	CHECK(!str_starts(STR("abc"), STR("abcd")));
	CHECK(!str_starts(STR("abc"), STR("b")));
	CHECK(str_starts(STR_NONE, STR_NONE));
}

static void a_copy_fits_with_its_terminator_or_is_empty(void)
{
	char out[4] = "zzz";

	CHECK(str_copy(out, sizeof out, STR("abc")));
	CHECK_STR(out, "abc");
	CHECK(!str_copy(out, sizeof out, STR("abcd")));
	CHECK_STR(out, "");
	CHECK(str_copy(out, sizeof out, STR_NONE));
	CHECK_STR(out, "");
}

static void a_copy_with_nul_inside_is_refused(void)
{
	char out[8];

	CHECK(!str_copy(out, sizeof out, STR("a\0b")));
	CHECK_STR(out, "");
	CHECK(str_is_text(STR_NONE) && !str_is_text(STR("\0")));
}

T_MAIN(T(views_compare_by_bytes_nul_included), T(a_prefix_may_be_empty_or_all),
       T(a_copy_fits_with_its_terminator_or_is_empty), T(a_copy_with_nul_inside_is_refused))
