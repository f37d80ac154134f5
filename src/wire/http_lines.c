/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, fields and framing of a message's head. */
#include "wire/http_lines.h"

#include <errno.h>
#include <strings.h>

enum { LENGTH_DIGITS = 18 };

bool http_is_tchar(unsigned char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
		return true;
	return c && strchr("!#$%&'*+-.^_`|~", c);
}

bool http_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!http_is_tchar((unsigned char)s.p[i]))
			return false;
	return s.n > 0;
}

bool http_is_value_byte(unsigned char c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

bool http_is_target_byte(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '#';
}

bool http_name_is(struct str name, const char *lower)
{
	return name.n == strlen(lower) && strncasecmp(name.p, lower, name.n) == 0;
}

int http_bad(struct http_head *h, const char *why)
{
	h->why = why;
	return -EBADMSG;
}

int64_t http_head_size(struct str in, struct http_head *h)
{
	size_t at = 0;

	while (at < in.n && at < LIMIT_HTTP_HEAD) {
		const char *lf = memchr(in.p + at, '\n', in.n - at);
		const char *cr = memchr(in.p + at, '\r', in.n - at);
		size_t end = lf ? (size_t)(lf - in.p) : in.n;

		if (cr && cr + 1 < in.p + in.n && cr[1] != '\n')
			return http_bad(h, "a CR stands alone");
		if (lf && (end == at || lf[-1] != '\r'))
			return http_bad(h, "a LF stands alone");
		if (!lf)
			break;
		if (end == at + 1) {
			if (at == 0)
				return http_bad(h, "an empty line comes first");
			return end + 1 > LIMIT_HTTP_HEAD ? -E2BIG : (int64_t)(end + 1);
		}
		at = end + 1;
	}
	if (in.n >= LIMIT_HTTP_HEAD) {
		h->why = "the head is too long";
		return -E2BIG;
	}
	return 0;
}

struct str http_line(struct str *head)
{
	const char *lf = memchr(head->p, '\n', head->n);
	struct str line = { head->p, lf ? (size_t)(lf - head->p) - 1 : head->n };

	head->n -= lf ? line.n + 2 : line.n;
	head->p += lf ? line.n + 2 : line.n;
	return line;
}

static struct str trim(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Some servers read '_' as '-' and would then see framing headers that we did not. */
static bool is_disguised(struct str name)
{
	static const char *const names[] = { "content_length", "transfer_encoding" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (http_name_is(name, names[i]))
			return true;
	return false;
}

static int header_parse(struct str line, struct http_header *ret, struct http_head *h)
{
	const char *colon = memchr(line.p, ':', line.n);

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return http_bad(h, "a header is folded over lines");
	if (!colon)
		return http_bad(h, "a header has no colon");
	ret->name = (struct str){ line.p, (size_t)(colon - line.p) };
	ret->value = trim((struct str){ colon + 1, line.n - ret->name.n - 1 });
	if (!http_is_token(ret->name))
		return http_bad(h, "a header's name is not a token");
	if (is_disguised(ret->name))
		return http_bad(h, "a framing header is written with an underscore");
	for (size_t i = 0; i < ret->value.n; i++)
		if (!http_is_value_byte((unsigned char)ret->value.p[i]))
			return http_bad(h, "a header's value has a control character");
	return 0;
}

int http_headers_parse(struct str head, struct http_head *h)
{
	struct str line;
	int r;

	while ((line = http_line(&head)).n) {
		if (h->n == LIMIT_HTTP_HEADERS) {
			h->why = "there are too many headers";
			return -E2BIG;
		}
		r = header_parse(line, &h->headers[h->n], h);
		if (r < 0)
			return r;
		h->n++;
	}
	return 0;
}

static size_t count(const struct http_head *h, const char *name, struct str *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < h->n; i++)
		if (http_name_is(h->headers[i].name, name)) {
			*ret = h->headers[i].value;
			found++;
		}
	return found;
}

const struct str *http_header(const struct http_head *h, const char *name)
{
	const struct str *found = NULL;

	for (size_t i = 0; i < h->n; i++)
		if (http_name_is(h->headers[i].name, name)) {
			if (found)
				return NULL;
			found = &h->headers[i].value;
		}
	return found;
}

bool http_has_token(const struct http_head *h, const char *name, const char *token)
{
	for (size_t i = 0; i < h->n; i++) {
		struct str rest = h->headers[i].value;

		if (!http_name_is(h->headers[i].name, name))
			continue;
		while (rest.n) {
			const char *comma = memchr(rest.p, ',', rest.n);
			size_t n = comma ? (size_t)(comma - rest.p) : rest.n;

			if (http_name_is(trim((struct str){ rest.p, n }), token))
				return true;
			rest.p += n + (comma != NULL);
			rest.n -= n + (comma != NULL);
		}
	}
	return false;
}

static int length_parse(struct str text, struct http_head *h)
{
	uint64_t n = 0;

	if (text.n == 0 || text.n > LENGTH_DIGITS)
		return http_bad(h, "Content-Length is not a number");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return http_bad(h, "Content-Length is not a number");
		n = n * 10 + (uint64_t)(text.p[i] - '0');
	}
	h->framing = HTTP_BODY_LENGTH;
	h->length = n;
	return 0;
}

int http_framing_parse(struct http_head *h, bool *ret_found)
{
	struct str length = STR_NONE, coding = STR_NONE;
	size_t lengths = count(h, "content-length", &length);
	size_t codings = count(h, "transfer-encoding", &coding);

	*ret_found = lengths || codings;
	h->framing = HTTP_BODY_NONE;
	if (lengths > 1)
		return http_bad(h, "there are several Content-Length");
	if (lengths && codings)
		return http_bad(h, "Content-Length and Transfer-Encoding contradict each other");
	if (lengths)
		return length_parse(length, h);
	if (!codings)
		return 0;
	if (h->minor == 0)
		return http_bad(h, "HTTP/1.0 has no Transfer-Encoding");
	if (codings > 1 || !http_name_is(coding, "chunked")) {
		h->why = "Transfer-Encoding is something else than 'chunked'";
		return -EOPNOTSUPP;
	}
	h->framing = HTTP_BODY_CHUNKED;
	return 0;
}

int http_connection_parse(struct http_head *h)
{
	struct str to = STR_NONE;
	size_t upgrades = count(h, "upgrade", &to);

	h->keep_alive = h->minor == 1 || http_has_token(h, "connection", "keep-alive");
	if (http_has_token(h, "connection", "close"))
		h->keep_alive = false;
	h->upgrade = upgrades > 0 && http_has_token(h, "connection", "upgrade");
	h->websocket = h->upgrade && upgrades == 1 && http_name_is(to, "websocket");
	return 0;
}

int http_version_parse(struct str text, struct http_head *h)
{
	static const struct str http = STR("HTTP/");

	if (text.n != http.n + 3 || !str_starts(text, http) || text.p[5] < '0' || text.p[5] > '9' ||
	    text.p[6] != '.' || text.p[7] < '0' || text.p[7] > '9')
		return http_bad(h, "the version is malformed");
	if (text.p[5] != '1' || text.p[7] > '1') {
		h->why = "only HTTP/1.1 and HTTP/1.0 are supported";
		return -EPROTO;
	}
	h->minor = text.p[7] - '0';
	return 0;
}
