/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path.h"

#include "base/cleanup.h"
#include "t.h"

static void plain_paths_are_plain(void)
{
	static const char *const rows[] = {
		"/",	 "/a",	 "/a/",	     "/a/b.c",	"/a%20b", "/%e4%bd%a0", "/.well-known/x",
		"/a..b", "/...", "/a;x=1/b", "/@scope", "/~user"
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!path_is_plain(str_of(rows[i])))
			t_fail(__FILE__, (int)i, rows[i]);
}

static void ambiguous_paths_are_not_plain(void)
{
	static const char *const rows[] = {
		"",	    "a",	 "//",	   "//a",    "/a//b",	     "/.",
		"/..",	    "/a/../b",	 "/a/./b", "/a/..",  "/%2e%2e/b",    "/%2E./b",
		"/a/%2e",   "/a%2fb",	 "/a%2Fb", "/a%5cb", "/a\\b",	     "/a%00",
		"/%61dmin", "/a%",	 "/a%2",   "/a%zz",  "/%252e%252e/", "/..;/b",
		"/.;x/b",   "/a%0d%0ab", "/a%7f",  "/a%2d",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (path_is_plain(str_of(rows[i])))
			t_fail(__FILE__, (int)i, rows[i]);
}

T_MAIN(T(plain_paths_are_plain), T(ambiguous_paths_are_not_plain))
