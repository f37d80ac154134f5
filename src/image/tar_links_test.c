/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_links.h"

#include "base/limits.h"
#include "t.h"

static void the_first_name_of_each_file_is_found(void)
{
	struct tar_links t;
	char name[32];

	tar_links_init(&t);
	CHECK(!tar_links_find(&t, 1, 1));
	for (unsigned i = 0; i < 5000; i++) {
		sprintf(name, "n%u", i);
		tar_links_note(&t, i % 3, i, name);
		tar_links_note(&t, i % 3, i, "later");
	}
	for (unsigned i = 0; i < 5000; i++) {
		sprintf(name, "n%u", i);
		CHECK_STR(tar_links_find(&t, i % 3, i), name);
		CHECK(!tar_links_find(&t, 3, i));
	}
	tar_links_done(&t);
}

static void past_its_limit_the_table_only_forgets(void)
{
	struct tar_links t;

	tar_links_init(&t);
	for (unsigned i = 0; i < LIMIT_TREE_LINKS + 1; i++)
		tar_links_note(&t, 1, i, "x");
	CHECK(tar_links_find(&t, 1, LIMIT_TREE_LINKS - 1));
	CHECK(!tar_links_find(&t, 1, LIMIT_TREE_LINKS));
	tar_links_done(&t);
}

T_MAIN(T(the_first_name_of_each_file_is_found), T(past_its_limit_the_table_only_forgets))
