/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const char *key, const char *what, struct err *e)
{
	(void)err_set(e, ERR_INVALID, "%s must be %s", key, what);
	return err_field(e, "%s", key);
}

static const json_t *member(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_null(v) ? NULL : v;
}

int field_text(const json_t *o, const char *key, const char **ret, struct err *e)
{
	const json_t *v = member(o, key);

	if (!v)
		return 0;
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return wrong(key, "a text", e);
	*ret = json_string_value(v);
	return 0;
}

int field_bool(const json_t *o, const char *key, bool *ret, struct err *e)
{
	const json_t *v = member(o, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return wrong(key, "true or false", e);
	*ret = json_is_true(v);
	return 0;
}

int field_number(const json_t *o, const char *key, int64_t least, int64_t most, int64_t *ret,
		 struct err *e)
{
	const json_t *v = member(o, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most) {
		(void)err_set(e, ERR_INVALID, "%s must be a whole number from %lld to %lld", key,
			      (long long)least, (long long)most);
		return err_field(e, "%s", key);
	}
	*ret = json_integer_value(v);
	return 0;
}

static int add_pair(struct text_pairs *p, const char *key, const json_t *value)
{
	size_t nk = strlen(key), nv = json_string_length(value);
	char *text = malloc(nk + nv + 2);

	if (!text)
		return -ENOMEM;
	memcpy(text, key, nk);
	text[nk] = '=';
	memcpy(text + nk + 1, json_string_value(value), nv);
	text[nk + 1 + nv] = '\0';
	p->items[p->n++] = text;
	return 0;
}

int field_pairs(const json_t *o, const char *key, int most, struct text_pairs *ret, struct err *e)
{
	json_t *v = (json_t *)member(o, key);
	const char *name;
	json_t *value;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return wrong(key, "an object of texts", e);
	if (json_object_size(v) > (size_t)most)
		return err_set(e, ERR_INVALID, "%s has %zu members, at most %d", key,
			       json_object_size(v), most);
	ret->items = calloc(json_object_size(v) + 1, sizeof *ret->items);
	if (!ret->items)
		return err_sys(e, ENOMEM, "%s", key);
	json_object_foreach(v, name, value)
	{
		if (!json_is_string(value) ||
		    strlen(json_string_value(value)) != json_string_length(value) || !name[0] ||
		    strchr(name, '='))
			return wrong(key, "an object of texts", e);
		if (add_pair(ret, name, value) < 0)
			return err_sys(e, ENOMEM, "%s", key);
	}
	return 0;
}

void text_pairs_done(struct text_pairs *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->items[i]);
	free(p->items);
	*p = (struct text_pairs){ 0 };
}
