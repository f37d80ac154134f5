/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/doc.h"
#include "t.h"

static const struct v1_field inner[] = {
	{ .name = "path", .type = V1_TEXT, .flags = V1_REQUIRED, .most = 4 }, { .name = NULL }
};
static const struct v1_field item[] = { { .type = V1_OBJECT, .of = inner }, { .name = NULL } };
static const struct v1_field text[] = { { .type = V1_TEXT }, { .name = NULL } };
static const struct v1_field fields[] = {
	{ .name = "name", .type = V1_TEXT, .least = 1, .most = 3 },
	{ .name = "end", .type = V1_TEXT, .choices = "kill|pause" },
	{ .name = "count", .type = V1_INT, .least = 1, .most = 5 },
	{ .name = "force", .type = V1_BOOL },
	{ .name = "env", .type = V1_MAP, .most = 1 },
	{ .name = "dirs", .type = V1_ARRAY, .most = 2, .of = item },
	{ .name = NULL },
};
static const struct v1_field query[] = {
	{ .name = "limit", .type = V1_INT, .least = 1, .most = 10 },
	{ .name = "label", .type = V1_ARRAY, .of = text },
	{ .name = "path", .type = V1_TEXT, .flags = V1_REQUIRED, .most = 8 },
	{ .name = "all", .type = V1_BOOL },
	{ .name = NULL },
};

static struct err e;

/* The field that is named as wrong; "" if none is. */
static const char *body(const char *json)
{
	json_t *v = json_loads(json, JSON_ALLOW_NUL, NULL);

	CHECK(v);
	e = (struct err){ 0 };
	CHECK((v1_check(v, fields, &e) == 0) == !e.kind);
	json_decref(v);
	return e.field;
}

static const char *asked(const char *text_)
{
	e = (struct err){ 0 };
	CHECK((v1_check_query(str_of(text_), query, &e) == 0) == !e.kind);
	return e.field;
}

static void good_bodies_pass(void)
{
	CHECK_STR(body("{}"), "");
	CHECK_STR(body("{\"name\":\"abc\",\"end\":\"kill\",\"count\":5,\"force\":false}"), "");
	CHECK_STR(body("{\"name\":null,\"dirs\":null}"), "");
	CHECK_STR(body("{\"env\":{\"A\":\"\"},\"dirs\":[{\"path\":\"abcd\"},{\"path\":\"\"}]}"),
		  "");
}

static void a_wrong_field_is_named_with_its_place(void)
{
	static const struct {
		const char *json, *field;
	} rows[] = {
		{ "{\"name\":7}", "name" },
		{ "{\"name\":\"\"}", "name" },
		{ "{\"name\":\"abcd\"}", "name" },
		{ "{\"name\":\"a\\u0000\"}", "name" },
		{ "{\"end\":\"kil\"}", "end" },
		{ "{\"end\":\"kill|pause\"}", "end" },
		{ "{\"end\":\"\"}", "end" },
		{ "{\"count\":0}", "count" },
		{ "{\"count\":6}", "count" },
		{ "{\"count\":1.0}", "count" },
		{ "{\"force\":\"true\"}", "force" },
		{ "{\"env\":{\"A\":1}}", "env.A" },
		{ "{\"env\":{\"A=B\":\"\"}}", "env.A=B" },
		{ "{\"env\":{\"A\":\"\",\"B\":\"\"}}", "env" },
		{ "{\"dirs\":{}}", "dirs" },
		{ "{\"dirs\":[{\"path\":\"a\"},{\"path\":\"abcde\"}]}", "dirs[1].path" },
		{ "{\"dirs\":[{}]}", "dirs[0].path" },
		{ "{\"dirs\":[{\"path\":\"a\",\"x\":1}]}", "dirs[0].x" },
		{ "{\"dirs\":[7]}", "dirs[0]" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		CHECK_STR(body(rows[i].json), rows[i].field);
}

static void an_unknown_field_brings_the_nearest_name(void)
{
	CHECK_STR(body("{\"nmae\":1}"), "nmae");
	CHECK_STR(e.code, "field.unknown");
	CHECK_STR(e.hint, "did you mean 'name'?");
}

static void queries_are_checked_too(void)
{
	CHECK_STR(asked("path=/a"), "");
	CHECK_STR(asked("path=%2Fa&limit=10&label=a&label=b&all=true"), "");
	CHECK_STR(asked(""), "path");
	CHECK_STR(asked("path=a&path=b"), "path");
	CHECK_STR(asked("path=123456789"), "path");
	CHECK_STR(asked("path=a&limit=0"), "limit");
	CHECK_STR(asked("path=a&limit=-1"), "limit");
	CHECK_STR(asked("path=a&limit=1x"), "limit");
	CHECK_STR(asked("path=a&limit="), "limit");
	CHECK_STR(asked("path=a&limit=99999999999999999999"), "limit");
	CHECK_STR(asked("path=a&all=1"), "all");
	CHECK_STR(asked("path=a&other=1"), "other");
	CHECK_STR(asked("path=%zz"), "the query");
}

/* Each row has what its method needs, and rows of one path stand together. */
static void the_table_is_whole(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4 << 20);

	for (size_t i = 0; i < nv1_routes; i++) {
		const struct route *r = &v1_routes[i].route;
		const struct route_doc *d = v1_routes[i].doc;

		CHECK(!r->job != !r->handle);
		CHECK(!(r->flags & ROUTE_BODY) == !d->body);
		CHECK(d->answers[0].status && d->name && d->summary);
		CHECK(route_doc(r) == d);
	}
	CHECK(v1_openapi_put(&b) == 0);
	json_t *v = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json_is_object(json_object_get(v, "paths")));
	json_decref(v);
}

T_MAIN(T(good_bodies_pass), T(a_wrong_field_is_named_with_its_place),
       T(an_unknown_field_brings_the_nearest_name), T(queries_are_checked_too),
       T(the_table_is_whole))
