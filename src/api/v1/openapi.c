/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document, written from the tables of the routes. */
#include <stdio.h>
#include <string.h>

#include "api/v1/doc.h"
#include "base/cleanup.h"
#include "wire/json_write.h"

/* Where a schema stands: only fields of a request's body may be null instead of absent. */
enum use { USE_BODY, USE_PARAMETER, USE_ANSWER };

static void put_schema(struct json *j, const struct v1_field *f, enum use use);

static void put_ref(struct json *j, const char *shape)
{
	char text[96];

	(void)snprintf(text, sizeof text, "#/components/schemas/%s", shape);
	json_put_c(j, "$ref", text);
}

static bool may_be_null(const struct v1_field *f, enum use use)
{
	if (use == USE_ANSWER)
		return f->flags & V1_NULL;
	return use == USE_BODY && f->name && !(f->flags & V1_REQUIRED);
}

static void put_type(struct json *j, const char *type, bool null)
{
	if (!null) {
		json_put_c(j, "type", type);
		return;
	}
	json_put_arr(j, "type");
	json_c(j, type);
	json_c(j, "null");
	json_end(j);
}

static void put_choices(struct json *j, const char *choices, bool null)
{
	struct str rest = str_of(choices);

	json_put_arr(j, "enum");
	while (rest.n) {
		const char *bar = memchr(rest.p, '|', rest.n);
		size_t n = bar ? (size_t)(bar - rest.p) : rest.n;

		json_str(j, (struct str){ rest.p, n });
		rest = bar ? (struct str){ bar + 1, rest.n - n - 1 } : STR_NONE;
	}
	if (null)
		json_nil(j);
	json_end(j);
}

static void put_range(struct json *j, const struct v1_field *f, const char *least, const char *most)
{
	if (f->least)
		json_put_i64(j, least, f->least);
	if (f->most)
		json_put_i64(j, most, f->most);
}

static void put_object(struct json *j, const struct v1_field *fields, enum use use)
{
	unsigned must = 0;

	json_put_obj(j, "properties");
	for (const struct v1_field *f = fields; f && f->name; f++) {
		json_key(j, f->name);
		put_schema(j, f, use);
		must += use == USE_ANSWER ? !(f->flags & V1_OPTIONAL) : f->flags & V1_REQUIRED;
	}
	json_end(j);
	if (must) {
		json_put_arr(j, "required");
		for (const struct v1_field *f = fields; f->name; f++)
			if (use == USE_ANSWER ? !(f->flags & V1_OPTIONAL) : f->flags & V1_REQUIRED)
				json_c(j, f->name);
		json_end(j);
	}
	if (use == USE_BODY)
		json_put_bool(j, "additionalProperties", false);
}

static void put_named(struct json *j, const char *shape, bool null)
{
	if (!null) {
		put_ref(j, shape);
		return;
	}
	json_put_arr(j, "anyOf");
	json_obj(j);
	put_ref(j, shape);
	json_end(j);
	json_obj(j);
	json_put_c(j, "type", "null");
	json_end(j);
	json_end(j);
}

static void put_text(struct json *j, const struct v1_field *f, bool null)
{
	if (f->flags & V1_RAW) {
		put_named(j, "Text", null);
		return;
	}
	put_type(j, "string", null);
	put_range(j, f, "minLength", "maxLength");
	if (f->choices)
		put_choices(j, f->choices, null);
}

static void put_schema(struct json *j, const struct v1_field *f, enum use use)
{
	bool null = may_be_null(f, use);

	json_obj(j);
	if (f->about)
		json_put_c(j, "description", f->about);
	switch (f->type) {
	case V1_TEXT:
		put_text(j, f, null);
		break;
	case V1_BOOL:
		put_type(j, "boolean", null);
		break;
	case V1_INT:
		put_type(j, "integer", null);
		if (use != USE_ANSWER && !f->least)
			json_put_i64(j, "minimum", 0);
		put_range(j, f, "minimum", "maximum");
		break;
	case V1_NUMBER:
		put_type(j, "number", null);
		break;
	case V1_OBJECT:
		put_type(j, "object", null);
		put_object(j, f->of, use);
		break;
	case V1_ARRAY:
		put_type(j, "array", null);
		json_key(j, "items");
		put_schema(j, f->of, use);
		put_range(j, f, "minItems", "maxItems");
		break;
	case V1_MAP:
		put_type(j, "object", null);
		json_put_obj(j, "additionalProperties");
		if (use == USE_ANSWER)
			put_ref(j, "Text");
		else
			json_put_c(j, "type", "string");
		json_end(j);
		put_range(j, f, "minProperties", "maxProperties");
		break;
	case V1_REF:
		put_named(j, f->ref, null);
		break;
	case V1_ANY:
		break;
	}
	json_end(j);
}

/* ---- routes ---- */

static void put_parameter(struct json *j, const char *name, const char *in,
			  const struct v1_field *f, bool required)
{
	json_obj(j);
	json_put_c(j, "name", name);
	json_put_c(j, "in", in);
	json_put_bool(j, "required", required);
	json_key(j, "schema");
	put_schema(j, f, USE_PARAMETER);
	json_end(j);
}

static void put_parameters(struct json *j, const struct route *r, const struct route_doc *d)
{
	static const struct v1_field id = {
		.type = V1_TEXT, .about = "An id or a name", .least = 1, .most = 63
	};
	static const struct v1_field sub = { .type = V1_TEXT, .least = 1, .most = 63 };
	static const struct v1_field key = {
		.type = V1_TEXT,
		.about = "A text of the client's choice. The same request with the same key is "
			 "done once, also if the first answer was lost.",
		.least = 1,
		.most = 255
	};

	json_put_arr(j, "parameters");
	if (strstr(r->path, "{id}"))
		put_parameter(j, "id", "path", &id, true);
	if (strstr(r->path, "{sub}"))
		put_parameter(j, "sub", "path", &sub, true);
	for (const struct v1_field *f = d->query; f && f->name; f++)
		put_parameter(j, f->name, "query", f, f->flags & V1_REQUIRED);
	if (r->flags & ROUTE_ONCE)
		put_parameter(j, "Idempotency-Key", "header", &key, false);
	json_end(j);
}

static void put_list(struct json *j, const char *shape)
{
	json_put_c(j, "type", "object");
	json_put_obj(j, "properties");
	json_put_obj(j, "items");
	json_put_c(j, "type", "array");
	json_put_obj(j, "items");
	put_ref(j, shape);
	json_end(j);
	json_end(j);
	json_put_obj(j, "next");
	json_put_c(j, "description",
		   "The cursor of the next page (`after`); null: this is the last");
	put_type(j, "string", true);
	json_end(j);
	json_end(j);
	json_put_arr(j, "required");
	json_c(j, "items");
	json_c(j, "next");
	json_end(j);
}

/* {"content":{TYPE:{"schema":…}}} of an answer. */
static void put_content(struct json *j, const struct route_answer *a)
{
	json_put_obj(j, "content");
	json_put_obj(j, a->type ? a->type : "application/json");
	json_put_obj(j, "schema");
	if (a->list)
		put_list(j, a->shape);
	else if (a->shape)
		put_ref(j, a->shape);
	json_end(j);
	json_end(j);
	if (a->also) {
		json_put_obj(j, a->also);
		json_end(j);
	}
	json_end(j);
}

static void put_answers(struct json *j, const struct route_doc *d)
{
	static const struct route_answer error = { .shape = "Error" };
	char text[400];

	json_put_obj(j, "responses");
	for (int i = 0; i < ROUTE_ANSWERS && d->answers[i].status; i++) {
		char status[16];

		(void)snprintf(status, sizeof status, "%d", d->answers[i].status);
		json_put_obj(j, status);
		json_put_c(j, "description", d->answers[i].about ? d->answers[i].about : "Done");
		if (d->answers[i].shape || d->answers[i].type)
			put_content(j, &d->answers[i]);
		json_end(j);
	}
	json_put_obj(j, "default");
	(void)snprintf(text, sizeof text, "An error%s%s", d->errors ? "; own codes: " : "",
		       d->errors ? d->errors : "");
	json_put_c(j, "description", text);
	put_content(j, &error);
	json_end(j);
	json_end(j);
}

static void put_body(struct json *j, const struct route_doc *d)
{
	json_put_obj(j, "requestBody");
	json_put_bool(j, "required", false);
	json_put_obj(j, "content");
	json_put_obj(j, d->raw ? d->raw : "application/json");
	json_put_obj(j, "schema");
	if (!d->raw) {
		json_put_c(j, "type", "object");
		put_object(j, d->body, USE_BODY);
	}
	json_end(j);
	json_end(j);
	json_end(j);
	json_end(j);
}

static void put_route(struct json *j, const struct v1_route *row)
{
	const struct route *r = &row->route;
	const struct route_doc *d = row->doc;
	char method[8];
	size_t i;

	for (i = 0; r->method[i] && i + 1 < sizeof method; i++)
		method[i] = (char)(r->method[i] | 0x20);
	method[i] = '\0';
	json_put_obj(j, method);
	json_put_c(j, "operationId", d->name);
	json_put_arr(j, "tags");
	json_c(j, d->tag);
	json_end(j);
	json_put_c(j, "summary", d->summary);
	if (d->about)
		json_put_c(j, "description", d->about);
	put_parameters(j, r, d);
	if (d->body || d->raw)
		put_body(j, d);
	put_answers(j, d);
	if (r->flags & ROUTE_ADMIN)
		json_put_bool(j, "x-cay-host-only", true);
	json_end(j);
}

/* Rows with the same path stand together in the table. */
static void put_paths(struct json *j)
{
	json_put_obj(j, "paths");
	for (size_t i = 0; i < nv1_routes; i++) {
		if (i == 0 || strcmp(v1_routes[i].route.path, v1_routes[i - 1].route.path) != 0) {
			if (i)
				json_end(j);
			json_put_obj(j, v1_routes[i].route.path);
		}
		put_route(j, &v1_routes[i]);
	}
	json_end(j);
	json_end(j);
}

static void put_components(struct json *j)
{
	json_put_obj(j, "components");
	json_put_obj(j, "securitySchemes");
	json_put_obj(j, "key");
	json_put_c(j, "type", "apiKey");
	json_put_c(j, "in", "header");
	json_put_c(j, "name", "X-API-Key");
	json_end(j);
	json_end(j);
	json_put_obj(j, "schemas");
	json_put_raw(j, "Text",
		     STR("{\"description\":\"Text; an object where the bytes are not UTF-8\","
			 "\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":"
			 "{\"b64\":{\"type\":\"string\"}},\"required\":[\"b64\"]}]}"));
	for (size_t i = 0; i < nv1_shapes; i++) {
		json_put_obj(j, v1_shapes[i].name);
		json_put_c(j, "description", v1_shapes[i].about);
		json_put_c(j, "type", "object");
		put_object(j, v1_shapes[i].fields, USE_ANSWER);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

int v1_openapi_put(struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_obj(&j);
	json_put_c(&j, "openapi", "3.1.0");
	json_put_obj(&j, "info");
	json_put_c(&j, "title", "Cay");
	json_put_c(&j, "version", "1");
	json_put_c(&j, "description",
		   "The native API of cay serve. Fields, routes and values are only ever added.");
	json_end(&j);
	json_put_arr(&j, "security");
	json_obj(&j);
	json_put_arr(&j, "key");
	json_end(&j);
	json_end(&j);
	json_end(&j);
	put_paths(&j);
	put_components(&j);
	json_end(&j);
	return json_done(&j);
}
