/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cookie.h"

#include <errno.h>

#include "wire/http_lines.h"

/* RFC 6265 4.1.1: cookie-octet. */
static bool is_cookie_byte(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\';
}

static bool is_cookie_value(struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if (!is_cookie_byte((unsigned char)value.p[i]))
			return false;
	return true;
}

/* Cut the next "name=value" off the front. False at the end. */
static bool pair_next(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	const char *semicolon, *equals;
	struct str pair;

	while (rest->n && (rest->p[0] == ' ' || rest->p[0] == ';')) {
		rest->p++;
		rest->n--;
	}
	if (rest->n == 0)
		return false;
	semicolon = memchr(rest->p, ';', rest->n);
	pair = (struct str){ rest->p, semicolon ? (size_t)(semicolon - rest->p) : rest->n };
	rest->p += pair.n;
	rest->n -= pair.n;
	equals = memchr(pair.p, '=', pair.n);
	*ret_name = (struct str){ pair.p, equals ? (size_t)(equals - pair.p) : pair.n };
	*ret_value = STR("");
	if (equals)
		*ret_value = (struct str){ equals + 1, pair.n - ret_name->n - 1 };
	return true;
}

int cookie_get(struct str header, const char *name, struct str *ret)
{
	struct str pair_name, value, found = STR_NONE;
	bool has = false;

	while (pair_next(&header, &pair_name, &value)) {
		if (!str_is(pair_name, name))
			continue;
		if (has)
			return -EEXIST;
		if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
			value = (struct str){ value.p + 1, value.n - 2 };
		if (!is_cookie_value(value))
			return -EBADMSG;
		has = true;
		found = value;
	}
	if (has)
		*ret = found;
	return has;
}

int cookie_put(struct buf *b, const struct cookie *c)
{
	const char *path = c->path ? c->path : "/";
	size_t before = b->len;
	int r;

	if (!http_is_token(str_of(c->name)) || !is_cookie_value(c->value) || path[0] != '/' ||
	    !is_cookie_value(str_of(path)))
		return -EINVAL;
	r = buf_printf(b, "%s=%.*s; Path=%s; HttpOnly; SameSite=%s%s", c->name, STR_ARG(c->value),
		       path, c->strict ? "Strict" : "Lax", c->secure ? "; Secure" : "");
	if (r == 0 && c->max_age_s >= 0)
		r = buf_printf(b, "; Max-Age=%lld", (long long)c->max_age_s);
	if (r < 0)
		buf_cut(b, before);
	return r;
}
