/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/merge.h"

#include "t.h"

static const struct merge_names names = { "host", "sandbox" };

static void is(const char *base, const char *ours, const char *theirs, int conflicts,
	       const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	CHECK(buf_add_c(&b, "") == 0);
	CHECK(merge_texts(str_of(base), str_of(ours), str_of(theirs), &names, &b) == conflicts);
	CHECK_STR(b.data, want);
}

static void changes_of_one_side_are_taken(void)
{
	is("a\nb\nc\n", "a\nb\nc\n", "a\nX\nc\n", 0, "a\nX\nc\n");
	is("a\nb\nc\n", "a\nX\nc\n", "a\nb\nc\n", 0, "a\nX\nc\n");
	is("", "", "new\n", 0, "new\n");
	is("a\n", "", "a\n", 0, "");
}

static void changes_apart_are_both_taken(void)
{
	is("1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\nsix\n", 0,
	   "one\n2\n3\n4\nfive\nsix\n");
	is("1\n2\n3\n4\n5\n6\n7\n", "2\n3\n4\n5\n6\n7\n", "1\n2\n3\nX\n4\n6\n7\n8\n", 0,
	   "2\n3\nX\n4\n6\n7\n8\n");
}

static void equal_changes_are_taken_once(void)
{
	is("a\nb\n", "a\nX\n", "a\nX\n", 0, "a\nX\n");
}

static void different_changes_of_one_line_are_a_conflict(void)
{
	is("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", 1,
	   "a\n<<<<<<< host\nX\n||||||| base\nb\n=======\nY\n>>>>>>> sandbox\nc\n");
}

static void changes_that_touch_are_a_conflict(void)
{
	is("a\nb\nc\n", "X\nb\nc\n", "a\nY\nc\n", 1,
	   "<<<<<<< host\nX\nb\n||||||| base\na\nb\n=======\na\nY\n>>>>>>> sandbox\nc\n");
}

static void a_last_line_without_newline_keeps_the_markers_apart(void)
{
	is("a", "b", "c", 1, "<<<<<<< host\nb\n||||||| base\na\n=======\nc\n>>>>>>> sandbox\n");
}

static void a_long_edit_spans_short_ones(void)
{
	is("1\n2\n3\n4\n5\n6\n", "X\n6\n", "1\n2\n3\nfour\n5\n6\n", 1,
	   "<<<<<<< host\nX\n||||||| base\n1\n2\n3\n4\n5\n=======\n1\n2\n3\nfour\n5\n"
	   ">>>>>>> sandbox\n6\n");
}

/* Like git: editors show one kind of line end for the whole file. */
static void markers_end_as_the_lines_around_them(void)
{
	is("a\r\nb\r\n", "a\r\nX\r\n", "a\r\nY\r\n", 1,
	   "a\r\n<<<<<<< host\r\nX\r\n||||||| base\r\nb\r\n=======\r\nY\r\n>>>>>>> sandbox\r\n");
	is("end\r\n", "end\r\nc", "end\r\nb\n", 1,
	   "end\r\n<<<<<<< host\r\nc\r\n||||||| base\r\n=======\r\nb\n>>>>>>> sandbox\r\n");
	is("a\r\nb\n", "a\r\nX\n", "a\nb\nY\n", 1,
	   "<<<<<<< host\na\r\nX\n||||||| base\na\r\nb\n=======\na\nb\nY\n>>>>>>> sandbox\n");
	is("", "X", "Y", 1, "<<<<<<< host\nX\n||||||| base\n=======\nY\n>>>>>>> sandbox\n");
}

/* Binary files are not merged by lines; but if one side is unchanged, the other side wins. */
static void what_is_no_text_is_not_merged(void)
{
	const struct str text = STR("a\n"), other = STR("b\n"), data = STR("a\0b"),
			 more = STR("a\0c");

	CHECK(merge_is_possible(text, text, other) && merge_is_possible(STR(""), text, other));
	CHECK(!merge_is_possible(text, other, data) && !merge_is_possible(data, text, other));
	CHECK(!merge_is_possible(text, data, more));
	CHECK(merge_is_possible(data, data, more) && merge_is_possible(data, more, data));
	CHECK(merge_is_possible(text, data, data));
}

T_MAIN(T(changes_of_one_side_are_taken), T(changes_apart_are_both_taken),
       T(equal_changes_are_taken_once), T(different_changes_of_one_line_are_a_conflict),
       T(changes_that_touch_are_a_conflict), T(a_last_line_without_newline_keeps_the_markers_apart),
       T(a_long_edit_spans_short_ones), T(markers_end_as_the_lines_around_them),
       T(what_is_no_text_is_not_merged))
