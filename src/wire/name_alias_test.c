/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name_alias.h"

#include "base/cleanup.h"
#include "t.h"

static void other_spellings_of_git_are_found(void)
{
	static const char *const names[] = {
		".git",
		".GiT",
		".git.",
		".git . .",
		".git ",
		"git~1",
		"GIT~1",
		".git::$INDEX_ALLOCATION",
		".git:x",
		"git~1.",
		".g\xe2\x80\x8cit",
		"\xef\xbb\xbf.git",
		".git\xc2\xad",
		".git\\hooks",
		".G\xe2\x81\xa0I\xe2\x80\x8dt",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!name_is_git(str_of(names[i])))
			printf("# name %zu\n", i);
		CHECK(name_is_git(str_of(names[i])));
	}
}

static void other_names_are_left_alone(void)
{
	static const char *const names[] = {
		"",	  ".",	   "..",	   ".gi",   "git",  ".gitignore",  "x.git", "git~2",
		".git.x", ". git", ".g\xe2\x80it", ".gitt", "git~", ".gi\xc3\xad", ":.git",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (name_is_git(str_of(names[i])))
			printf("# name %zu\n", i);
		CHECK(!name_is_git(str_of(names[i])));
	}
}

static void a_name_counts_as_far_as_its_length(void)
{
	CHECK(name_is_git((struct str){ ".gitignore", 4 }));
	CHECK(!name_is_git((struct str){ ".git", 3 }));
	CHECK(name_is_alias(str_of("_DARCS."), "_darcs"));
	CHECK(!name_is_alias(str_of("_darcs2"), "_darcs"));
}

T_MAIN(T(other_spellings_of_git_are_found), T(other_names_are_left_alone),
       T(a_name_counts_as_far_as_its_length))
