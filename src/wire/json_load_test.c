/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_load.h"

#include "t.h"

static bool loads(const char *text)
{
	json_t *v = json_load_object(str_of(text));

	json_decref(v);
	return v;
}

static void only_strict_objects_are_taken(void)
{
	CHECK(loads("{}") && loads("{\"a\":[1,{\"b\":null}]}"));
	CHECK(!loads("") && !loads("[]") && !loads("1") && !loads("{") && !loads("{}x"));
	CHECK(!loads("{\"a\":1,\"a\":2}"));
	CHECK(!loads("{\"a\":\"\xff\"}"));
}

static void depth_has_a_limit(void)
{
	char text[256] = "";

	for (int extra = 0; extra < 2; extra++) {
		int n = JSON_LOAD_DEPTH - 1 + extra;

		(void)snprintf(text, sizeof text, "{\"a\":%.*s%.*s}", n,
			       "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", n,
			       "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
		CHECK(loads(text) == (extra == 0));
	}
	CHECK(loads("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"}"));
}

T_MAIN(T(only_strict_objects_are_taken), T(depth_has_a_limit))
