/* SPDX-License-Identifier: Apache-2.0 */
/* Requests against the tables of their routes. Pure. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/v1/doc.h"
#include "base/suggest.h"
#include "wire/url.h"

enum { PATH_SIZE = 96, QUERY_VALUE = 16 * 1024 };

/* Where a value is: "dirs[0].path". */
struct place {
	const struct place *in;
	const char *name; /* NULL: an element */
	size_t index;
};

static void place_put(const struct place *p, char *out, size_t size)
{
	size_t n;

	if (p->in)
		place_put(p->in, out, size);
	else
		out[0] = '\0';
	n = strlen(out);
	if (p->name)
		(void)snprintf(out + n, size - n, "%s%s", n ? "." : "", p->name);
	else
		(void)snprintf(out + n, size - n, "[%zu]", p->index);
}

static int wrong(const struct place *p, struct err *e, const char *what)
{
	char where[PATH_SIZE];

	place_put(p, where, sizeof where);
	(void)err_set(e, ERR_INVALID, "%s %s", where, what);
	(void)err_code(e, "field.invalid", NULL);
	return err_field(e, "%.31s", where);
}

static bool is_choice(const char *choices, struct str value)
{
	struct str rest = str_of(choices);

	while (rest.n) {
		const char *bar = memchr(rest.p, '|', rest.n);
		struct str one = { rest.p, bar ? (size_t)(bar - rest.p) : rest.n };

		if (str_eq(one, value))
			return true;
		rest = bar ? (struct str){ bar + 1, rest.n - one.n - 1 } : STR_NONE;
	}
	return false;
}

static int check_text(struct str v, const struct v1_field *f, const struct place *p, struct err *e)
{
	char what[200];

	if (!str_is_text(v))
		return wrong(p, e, "must not have a NUL byte");
	if (f->choices && !is_choice(f->choices, v)) {
		(void)snprintf(what, sizeof what, "must be one of %s", f->choices);
		return wrong(p, e, what);
	}
	if (f->least && v.n < (size_t)f->least)
		return wrong(p, e, "must not be empty");
	if (f->most && v.n > (size_t)f->most) {
		(void)snprintf(what, sizeof what, "is too long: at most %lld bytes",
			       (long long)f->most);
		return wrong(p, e, what);
	}
	return 0;
}

static int check_int(json_int_t n, const struct v1_field *f, const struct place *p, struct err *e)
{
	char what[120];

	if (n >= f->least && (!f->most || n <= f->most))
		return 0;
	if (f->most)
		(void)snprintf(what, sizeof what, "must be from %lld to %lld", (long long)f->least,
			       (long long)f->most);
	else
		(void)snprintf(what, sizeof what, "must be at least %lld", (long long)f->least);
	return wrong(p, e, what);
}

static int check_count(size_t n, const struct v1_field *f, const struct place *p, struct err *e)
{
	char what[120];

	if (n >= (size_t)f->least && (!f->most || n <= (size_t)f->most))
		return 0;
	(void)snprintf(what, sizeof what, "must have %lld to %lld entries", (long long)f->least,
		       (long long)f->most);
	return wrong(p, e, what);
}

static int check_members(const json_t *v, const struct v1_field *fields, const struct place *in,
			 struct err *e);

static int check_map(const json_t *v, const struct v1_field *f, const struct place *p,
		     struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)v, key, value)
	{
		struct place at = { p, key, 0 };

		if (!key[0] || strchr(key, '='))
			return wrong(&at, e, "has a name that is empty or has a '='");
		if (!json_is_string(value) ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return wrong(&at, e, "must be a text");
	}
	return check_count(json_object_size(v), f, p, e);
}

static int check_value(const json_t *v, const struct v1_field *f, const struct place *p,
		       struct err *e)
{
	switch (f->type) {
	case V1_TEXT:
		return json_is_string(v) ? check_text((struct str){ json_string_value(v),
								    json_string_length(v) },
						      f, p, e)
					 : wrong(p, e, "must be a text");
	case V1_BOOL:
		return json_is_boolean(v) ? 0 : wrong(p, e, "must be true or false");
	case V1_INT:
		return json_is_integer(v) ? check_int(json_integer_value(v), f, p, e)
					  : wrong(p, e, "must be a whole number");
	case V1_MAP:
		return json_is_object(v) ? check_map(v, f, p, e)
					 : wrong(p, e, "must be an object of texts");
	case V1_OBJECT:
		return json_is_object(v) ? check_members(v, f->of, p, e)
					 : wrong(p, e, "must be an object");
	case V1_ARRAY:
		if (!json_is_array(v))
			return wrong(p, e, "must be an array");
		for (size_t i = 0; i < json_array_size(v); i++) {
			struct place at = { p, NULL, i };

			if (check_value(json_array_get(v, i), f->of, &at, e) < 0)
				return -1;
		}
		return check_count(json_array_size(v), f, p, e);
	case V1_NUMBER:
	case V1_REF:
	case V1_ANY:
		break;
	}
	return wrong(p, e, "cannot be given");
}

static const struct v1_field *field_find(const struct v1_field *fields, const char *name)
{
	for (; fields && fields->name; fields++)
		if (strcmp(fields->name, name) == 0)
			return fields;
	return NULL;
}

static int unknown(const struct v1_field *fields, const struct place *p, struct err *e)
{
	struct suggest s = { .word = p->name };

	for (; fields && fields->name; fields++)
		suggest_offer(&s, fields->name);
	(void)wrong(p, e, "is unknown");
	(void)err_code(e, "field.unknown", NULL);
	if (s.best)
		(void)err_hint(e, "did you mean '%s'?", s.best);
	return -1;
}

static int check_members(const json_t *v, const struct v1_field *fields, const struct place *in,
			 struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)v, key, value)
	{
		const struct v1_field *f = field_find(fields, key);
		struct place at = { in, key, 0 };

		if (!f)
			return unknown(fields, &at, e);
		/* null means not given. */
		if (!json_is_null(value) && check_value(value, f, &at, e) < 0)
			return -1;
	}
	for (const struct v1_field *f = fields; f && f->name; f++) {
		struct place at = { in, f->name, 0 };

		value = json_object_get(v, f->name);
		if (f->flags & V1_REQUIRED && (!value || json_is_null(value)))
			return wrong(&at, e, "is missing");
	}
	return 0;
}

int v1_check(const json_t *body, const struct v1_field *fields, struct err *e)
{
	return check_members(body, fields, NULL, e);
}

/* A text of a query as the value that its row wants. */
static int check_param(struct str text, const struct v1_field *f, const struct place *p,
		       struct err *e)
{
	char *end;
	json_int_t n;

	if (f->type == V1_BOOL)
		return str_is(text, "true") || str_is(text, "false")
			       ? 0
			       : wrong(p, e, "must be true or false");
	if (f->type != V1_INT)
		return check_text(text, f, p, e);
	errno = 0;
	n = text.n && text.p[0] >= '0' && text.p[0] <= '9' ? strtoll(text.p, &end, 10) : -1;
	if (n < 0 || *end || errno)
		return wrong(p, e, "must be a whole number");
	return check_int(n, f, p, e);
}

/* An array may be given several times; its elements are texts. */
static int check_given(struct str name, struct str value, const struct v1_field *fields,
		       uint64_t *seen, struct err *e)
{
	auto_done(buf_done) struct buf key = BUF_INIT(256), text = BUF_INIT(QUERY_VALUE);
	const struct v1_field *f;
	struct place at = { NULL, "the query", 0 };
	uint64_t bit;

	if (url_decode(&key, name, URL_PLUS | URL_SLASH) < 0 ||
	    url_decode(&text, value, URL_PLUS | URL_SLASH) < 0 || !key.len)
		return wrong(&at, e, "is malformed or too long");
	at.name = key.data;
	f = field_find(fields, key.data);
	if (!f)
		return unknown(fields, &at, e);
	bit = 1ull << (f - fields);
	if (*seen & bit && f->type != V1_ARRAY)
		return wrong(&at, e, "is given twice");
	*seen |= bit;
	return check_param(text.len ? buf_str(&text) : STR(""), f->type == V1_ARRAY ? f->of : f,
			   &at, e);
}

int v1_check_query(struct str query, const struct v1_field *fields, struct err *e)
{
	struct str name, value;
	uint64_t seen = 0;

	while (url_query_next(&query, &name, &value))
		if (check_given(name, value, fields, &seen, e) < 0)
			return -1;
	for (const struct v1_field *f = fields; f && f->name; f++) {
		struct place at = { NULL, f->name, 0 };

		if (f->flags & V1_REQUIRED && !(seen & 1ull << (f - fields)))
			return wrong(&at, e, "is missing");
	}
	return 0;
}
