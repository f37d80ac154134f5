/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"
#include "t.h"

static const char *nearest(const char *word)
{
	static const char *const words[] = { "run", "ls", "show", "ps", "kill", "template" };
	struct suggest s = { .word = word };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		suggest_offer(&s, words[i]);
	return s.best ? s.best : "";
}

static void a_transposition_is_one_step(void)
{
	CHECK(suggest_distance("tempalte", "template") == 1);
	CHECK(suggest_distance("sl", "ls") == 1);
	CHECK(suggest_distance("kitten", "sitting") == 3);
	CHECK(suggest_distance("abc", "abc") == 0);
	CHECK(suggest_distance("", "ab") == 2);
}

static void a_near_word_is_offered(void)
{
	CHECK_STR(nearest("tempalte"), "template");
	CHECK_STR(nearest("rnu"), "run");
	CHECK_STR(nearest("sl"), "ls");
	CHECK_STR(nearest("klll"), "kill");
}

static void the_nearest_of_several_wins(void)
{
	CHECK_STR(nearest("lss"), "ls");
	CHECK_STR(nearest("pss"), "ps");
}

static void a_far_word_is_not_offered(void)
{
	CHECK_STR(nearest("status"), "");
	CHECK_STR(nearest("foo"), "");
	CHECK_STR(nearest("xy"), "");
	CHECK_STR(nearest("r"), "");
	CHECK_STR(nearest(""), "");
}

static void a_very_long_word_is_far_from_all(void)
{
	char word[4096];

	memset(word, 'a', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	CHECK(suggest_distance(word, word) == SUGGEST_MAX + 1);
	CHECK_STR(nearest(word), "");
}

T_MAIN(T(a_transposition_is_one_step), T(a_near_word_is_offered), T(the_nearest_of_several_wins),
       T(a_far_word_is_not_offered), T(a_very_long_word_is_far_from_all))
