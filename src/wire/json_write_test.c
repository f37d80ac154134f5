/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_write.h"

#include <errno.h>
#include <jansson.h>

#include "t.h"

static void commas_and_colons_are_added(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_c(&j, "name", "web");
	json_put_arr(&j, "calls");
	json_u64(&j, UINT64_MAX);
	json_i64(&j, INT64_MIN);
	json_obj(&j);
	json_end(&j);
	json_arr(&j);
	json_end(&j);
	json_end(&j);
	json_put_obj(&j, "o");
	json_put_bool(&j, "t", true);
	json_put_nil(&j, "n");
	json_end(&j);
	json_put_raw(&j, "raw", STR("[1]"));
	json_put_i64(&j, "zero", 0);
	json_end(&j);
	CHECK(json_done(&j) == 0);
	CHECK_STR(b.data, "{\"name\":\"web\",\"calls\":[18446744073709551615,"
			  "-9223372036854775808,{},[]],\"o\":{\"t\":true,\"n\":null},\"raw\":[1],"
			  "\"zero\":0}");
}

static void check_str(struct str in, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	struct json j;

	json_init(&j, &b);
	json_str(&j, in);
	CHECK(json_done(&j) == 0);
	CHECK_STR(b.data, want);
}

static void strings_are_escaped(void)
{
	check_str(STR("a\"b\\c\nd\te\rf\x1b\0g\x7f"),
		  "\"a\\\"b\\\\c\\nd\\te\\rf\\u001b\\u0000g\\u007f\"");
	check_str(STR("\xc2\x9b\xc2\xa0\xc3\xa9"), "\"\\u009b\xc2\xa0\xc3\xa9\"");
	check_str(STR(""), "\"\"");
}

static void invalid_utf8_becomes_base64(void)
{
	check_str(STR("a\xff"), "{\"b64\":\"Yf8=\"}");
	check_str(STR("\xc2"), "{\"b64\":\"wg==\"}");
}

static void every_pair_of_bytes_round_trips(void)
{
	for (int v = 0; v < 65536; v++) {
		auto_done(buf_done) struct buf b = BUF_INIT(64);
		char in[2] = { (char)(v >> 8), (char)(v & 255) };
		struct json j;
		json_t *got;

		json_init(&j, &b);
		json_str(&j, (struct str){ in, 2 });
		CHECK(json_done(&j) == 0);
		got = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		CHECK(got);
		if (json_is_string(got))
			CHECK(json_string_length(got) == 2 &&
			      memcmp(json_string_value(got), in, 2) == 0);
		else
			CHECK(json_object_get(got, "b64"));
		json_decref(got);
	}
}

static void the_first_failure_is_kept(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(10);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_c(&j, "a", "0123456789");
	json_put_c(&j, "b", "");
	json_end(&j);
	CHECK(json_done(&j) == -E2BIG);
	CHECK(b.len <= 10);
}

static int wrong(const char *steps)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	struct json j;

	json_init(&j, &b);
	for (; *steps; steps++) {
		if (*steps == '{')
			json_obj(&j);
		else if (*steps == '[')
			json_arr(&j);
		else if (*steps == 'k')
			json_key(&j, "k");
		else if (*steps == 'v')
			json_nil(&j);
		else
			json_end(&j);
	}
	return json_done(&j);
}

static void a_wrong_order_of_calls_is_an_error(void)
{
	static const char *const bad[] = { "",	"{",  "[",   "}",   "{v}", "{k}", "{kk",
					   "k", "vv", "[k]", "{}v", "[]]", "{}{}" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(wrong(bad[i]) == -EINVAL);
	CHECK(wrong("v") == 0);
	CHECK(wrong("{k[vv]kv}") == 0);
}

static void depth_is_bounded(void)
{
	char steps[2 * JSON_DEPTH + 3] = { 0 };

	memset(steps, '[', JSON_DEPTH);
	memset(steps + JSON_DEPTH, ']', JSON_DEPTH);
	CHECK(wrong(steps) == 0);
	memset(steps, '[', JSON_DEPTH + 1);
	memset(steps + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
	CHECK(wrong(steps) == -EINVAL);
}

static void empty_texts_are_null_and_times_have_a_fraction(void)
{
	struct buf b = BUF_INIT(200);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_text(&j, "a", "x");
	json_put_text(&j, "b", "");
	json_put_text(&j, "c", NULL);
	json_put_ms(&j, "d", 12005);
	json_put_ms(&j, "e", 0);
	json_end(&j);
	CHECK(json_done(&j) == 0);
	CHECK_STR(b.data, "{\"a\":\"x\",\"b\":null,\"c\":null,\"d\":12.005,\"e\":0.000}");
	buf_done(&b);
}

T_MAIN(T(commas_and_colons_are_added), T(strings_are_escaped), T(invalid_utf8_becomes_base64),
       T(every_pair_of_bytes_round_trips), T(the_first_failure_is_kept),
       T(a_wrong_order_of_calls_is_an_error), T(depth_is_bounded),
       T(empty_texts_are_null_and_times_have_a_fraction))
