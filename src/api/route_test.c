/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "t.h"

static const struct route rows[] = {
	{ "GET", "/a", "list", NULL, 0 },
	{ "GET", "/a/{id}", "get", NULL, 0 },
	{ "POST", "/a/{id}/b", "do", NULL, 0 },
	{ "GET", "/a/{id}/c/{sub}", "part", NULL, 0 },
};

static struct route_params at;
static bool other;

static const char *find(const char *method, const char *path)
{
	const struct route *r = route_find(rows, 4, str_of(method), str_of(path), &at, &other);

	return r ? r->job : "none";
}

static void a_row_is_found_with_its_segment(void)
{
	CHECK_STR(find("GET", "/a"), "list");
	CHECK_STR(find("GET", "/a/x%3Ay"), "get");
	CHECK_STR(at.id, "x:y");
	CHECK_STR(find("POST", "/a/x/b"), "do");
	CHECK_STR(find("GET", "/a/x/c/y%2Fz"), "part");
	CHECK_STR(at.id, "x");
	CHECK_STR(at.sub, "y/z");
}

static void paths_that_only_look_alike_are_not_found(void)
{
	static const char *const bad[] = {
		"/",
		"/a/",
		"/b",
		"/a/x/",
		"/a/x/c",
		"/a//b",
		"/a/x%00",
		"/a/x/b/c",
		"/a/0123456789012345678901234567890123456789012345678901234567891234"
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK_STR(find("GET", bad[i]), "none");
	CHECK(!other);
}

static void another_method_is_told_apart(void)
{
	CHECK_STR(find("PUT", "/a/x"), "none");
	CHECK(other);
}

T_MAIN(T(a_row_is_found_with_its_segment), T(paths_that_only_look_alike_are_not_found),
       T(another_method_is_told_apart))
