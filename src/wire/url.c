/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/url.h"

#include <errno.h>
#include <strings.h>

enum { URL_HTTP_PORT = 80, URL_HTTPS_PORT = 443 };

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at the front of *text, decoded. -1: a bad escape. */
static int decoded_byte(struct str *text)
{
	int high, low;

	if (text->p[0] != '%') {
		text->n--;
		return (unsigned char)*text->p++;
	}
	if (text->n < 3)
		return -1;
	high = hex_digit((unsigned char)text->p[1]);
	low = hex_digit((unsigned char)text->p[2]);
	if (high < 0 || low < 0)
		return -1;
	text->p += 3;
	text->n -= 3;
	return high << 4 | low;
}

int url_decode(struct buf *out, struct str text, unsigned flags)
{
	size_t before = out->len;

	while (text.n) {
		bool escaped = text.p[0] == '%';
		int c = decoded_byte(&text), r;
		char byte;

		if (c <= 0 || (escaped && c == '/' && !(flags & URL_SLASH))) {
			buf_cut(out, before);
			return -EBADMSG;
		}
		byte = !escaped && c == '+' && flags & URL_PLUS ? ' ' : (char)c;
		r = buf_add(out, &byte, 1);
		if (r < 0) {
			buf_cut(out, before);
			return r;
		}
	}
	return 0;
}

static bool is_unreserved(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("-._~", c));
}

int url_encode(struct buf *out, struct str text)
{
	size_t before = out->len;
	int r = 0;

	for (size_t i = 0; i < text.n && r == 0; i++) {
		unsigned char c = (unsigned char)text.p[i];

		r = is_unreserved(c) ? buf_add(out, &c, 1) : buf_printf(out, "%%%02X", c);
	}
	if (r < 0)
		buf_cut(out, before);
	return r;
}

/* A segment is refused if it is "." or "..", or has a byte that some reader takes for another. */
static int segment_check(struct str segment)
{
	size_t n = 0, dots = 0;

	while (segment.n) {
		int c = decoded_byte(&segment);

		if (c <= 0 || c == '\\')
			return -EBADMSG;
		n++;
		dots += c == '.';
	}
	return n > 0 && n <= 2 && dots == n ? -EBADMSG : 0;
}

int url_path_check(struct str path)
{
	struct str segment;

	if (path.n == 0 || path.p[0] != '/')
		return -EBADMSG;
	while (url_segment_next(&path, &segment))
		if (segment_check(segment) < 0)
			return -EBADMSG;
	return 0;
}

bool url_segment_next(struct str *rest, struct str *ret)
{
	const char *slash;

	if (rest->n == 0)
		return false;
	*ret = (struct str){ rest->p + 1, rest->n - 1 };
	slash = ret->n ? memchr(ret->p, '/', ret->n) : NULL;
	if (slash)
		ret->n = (size_t)(slash - ret->p);
	rest->p += 1 + ret->n;
	rest->n -= 1 + ret->n;
	return true;
}

bool url_query_next(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	while (rest->n) {
		const char *amp = memchr(rest->p, '&', rest->n), *equals;
		struct str pair = { rest->p, amp ? (size_t)(amp - rest->p) : rest->n };

		rest->p += pair.n + (amp != NULL);
		rest->n -= pair.n + (amp != NULL);
		if (pair.n == 0)
			continue;
		equals = memchr(pair.p, '=', pair.n);
		*ret_name = (struct str){ pair.p, equals ? (size_t)(equals - pair.p) : pair.n };
		*ret_value = STR("");
		if (equals)
			*ret_value = (struct str){ equals + 1, pair.n - ret_name->n - 1 };
		return true;
	}
	return false;
}

/* True if a raw name of a query equals `name` after decoding. -EBADMSG for a bad escape. */
static int is_named(struct str raw, const char *name)
{
	size_t n = 0, len = strlen(name);
	bool same = true;

	while (raw.n) {
		bool plus = raw.p[0] == '+';
		int c = decoded_byte(&raw);

		if (c <= 0)
			return -EBADMSG;
		same = same && n < len && (plus ? ' ' : c) == (unsigned char)name[n];
		n++;
	}
	return same && n == len;
}

int url_query_get(struct str query, const char *name, struct buf *out)
{
	struct str raw_name, raw_value, found = STR_NONE;
	bool has = false;
	int r;

	while (url_query_next(&query, &raw_name, &raw_value)) {
		r = is_named(raw_name, name);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (has)
			return -EEXIST;
		has = true;
		found = raw_value;
	}
	if (!has)
		return 0;
	r = url_decode(out, found, URL_PLUS | URL_SLASH);
	return r < 0 ? r : 1;
}

/* Visible ASCII that may stand in a request target: no blank, no fragment. */
static bool is_target(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || text.p[i] == '#')
			return false;
	return true;
}

int url_parse(struct str text, struct url *ret)
{
	static const struct str plain = STR("http://"), tls = STR("https://");
	size_t n = 0;

	*ret = (struct url){ .tls = text.n > tls.n && strncasecmp(text.p, tls.p, tls.n) == 0 };
	if (!ret->tls && (text.n <= plain.n || strncasecmp(text.p, plain.p, plain.n) != 0))
		return -EBADMSG;
	text.p += ret->tls ? tls.n : plain.n;
	text.n -= ret->tls ? tls.n : plain.n;
	while (n < text.n && text.p[n] != '/' && text.p[n] != '?')
		n++;
	ret->authority = (struct str){ text.p, n };
	ret->target = (struct str){ text.p + n, text.n - n };
	if (authority_parse(ret->authority, &ret->host, &ret->port) < 0 || !is_target(ret->target))
		return -EBADMSG;
	if (ret->target.n == 0)
		ret->target = STR("/");
	else if (ret->target.p[0] != '/') /* "http://host?query" has no form as a target */
		return -EBADMSG;
	if (ret->port == 0)
		ret->port = ret->tls ? URL_HTTPS_PORT : URL_HTTP_PORT;
	return 0;
}
