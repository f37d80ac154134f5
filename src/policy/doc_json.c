/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (jansson) to a tree. jansson gives lines only for syntax errors. */
#include <jansson.h>

#include "policy/doc.h"

static void json_free(json_t *j)
{
	json_decref(j);
}
DEFINE_AUTO_PTR(json_t, json_free)

static int add_number(struct doc *d, const json_t *j, struct err *e)
{
	char text[32];

	if (json_is_real(j))
		return doc_fail(d, 0, 0, e, "%g is not a whole number; write it as text",
				json_real_value(j));
	(void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(j));
	return doc_add(d, str_of(text), false, 0, 0, e);
}

static int add_value(struct doc *d, json_t *j, struct err *e);

static int add_list(struct doc *d, const json_t *j, struct err *e)
{
	if (doc_open(d, NODE_LIST, 0, 0, e) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(j); i++)
		if (add_value(d, json_array_get(j, i), e) < 0)
			return -1;
	doc_close(d);
	return 0;
}

static int add_map(struct doc *d, json_t *j, struct err *e)
{
	const char *key;
	json_t *value;

	if (doc_open(d, NODE_MAP, 0, 0, e) < 0)
		return -1;
	json_object_foreach(j, key, value) if (doc_add(d, str_of(key), false, 0, 0, e) < 0 ||
					       add_value(d, value, e) < 0) return -1;
	doc_close(d);
	return 0;
}

/* doc_open() bounds the depth. */
static int add_value(struct doc *d, json_t *j, struct err *e)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		return add_map(d, j, e);
	case JSON_ARRAY:
		return add_list(d, j, e);
	case JSON_STRING:
		return doc_add(d, (struct str){ json_string_value(j), json_string_length(j) },
			       false, 0, 0, e);
	case JSON_INTEGER:
	case JSON_REAL:
		return add_number(d, j, e);
	case JSON_TRUE:
		return doc_add(d, STR("true"), false, 0, 0, e);
	case JSON_FALSE:
		return doc_add(d, STR("false"), false, 0, 0, e);
	case JSON_NULL:
		break;
	}
	return doc_add(d, STR("null"), true, 0, 0, e);
}

int doc_read_json(struct doc *d, struct str text, struct err *e)
{
	json_error_t why;
	auto_done(json_free) json_t *j =
		json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &why);

	if (!j)
		return doc_fail(d, (unsigned)(why.line > 0 ? why.line : 0),
				(unsigned)(why.column > 0 ? why.column : 0), e, "%s", why.text);
	return add_value(d, j, e);
}
