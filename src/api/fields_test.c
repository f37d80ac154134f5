/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fields.h"

#include "api/answer.h"
#include "api/auth.h"
#include "t.h"
#include "wire/json_load.h"

static struct err e;

static void fields_have_a_type_and_a_range(void)
{
	auto_done(json_free) json_t *o =
		json_load_object(STR("{\"t\":\"x\",\"n\":5,\"b\":true,\"z\":null,\"f\":1.5}"));
	const char *text = "kept";
	int64_t n = 1;
	bool b = false;

	CHECK(field_text(o, "z", &text, &e) == 0 && field_text(o, "gone", &text, &e) == 0);
	CHECK_STR(text, "kept");
	CHECK(field_text(o, "t", &text, &e) == 0 && field_text(o, "n", &text, &e) < 0);
	CHECK_STR(e.field, "n");
	CHECK(field_number(o, "n", 1, 5, &n, &e) == 0 && n == 5);
	CHECK(field_number(o, "n", 1, 4, &n, &e) < 0 && field_number(o, "n", 6, 9, &n, &e) < 0);
	CHECK(field_number(o, "f", 0, 9, &n, &e) < 0 && field_number(o, "t", 0, 9, &n, &e) < 0);
	CHECK(field_bool(o, "b", &b, &e) == 0 && b && field_bool(o, "n", &b, &e) < 0);
}

static void pairs_are_texts_without_an_equals_sign_in_the_name(void)
{
	static const char *const bad[] = { "{\"m\":{\"a\":1}}", "{\"m\":{\"a=\":\"b\"}}",
					   "{\"m\":{\"\":\"b\"}}", "{\"m\":[]}",
					   "{\"m\":{\"a\":\"b\",\"c\":\"d\",\"e\":\"f\"}}" };
	auto_done(json_free) json_t *o = json_load_object(STR("{\"m\":{\"a\":\"b=c\"}}"));
	auto_done(text_pairs_done) struct text_pairs p = { 0 };

	CHECK(field_pairs(o, "m", 2, &p, &e) == 0 && p.n == 1);
	CHECK_STR(p.items[0], "a=b=c");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_done(json_free) json_t *v = json_load_object(str_of(bad[i]));
		struct text_pairs q = { 0 };

		CHECK(v && field_pairs(v, "m", 2, &q, &e) < 0);
		text_pairs_done(&q);
	}
}

static void an_answer_comes_back_as_it_was(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	const struct api_answer want = { .status = 201, .next = STR("next"), .body = STR("{}") };
	struct api_answer got;

	CHECK(api_answer_put(&b, &want) == 0 && api_answer_read(buf_str(&b), &got) == 0);
	CHECK(got.status == 201 && str_is(got.next, "next") && str_is(got.body, "{}"));
	CHECK(api_answer_read(STR_NONE, &got) < 0);
}

T_MAIN(T(fields_have_a_type_and_a_range), T(pairs_are_texts_without_an_equals_sign_in_the_name),
       T(an_answer_comes_back_as_it_was))
