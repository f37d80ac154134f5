/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sniff.h"

#include <strings.h>

#include "base/cleanup.h"

enum {
	TLS_HANDSHAKE = 0x16,
	TLS_MAJOR = 3,
	SSH_LINE = 255, /* RFC 4253 4.2 */
};

/*
 * The IANA registry of methods, and other common ones. PROXY is not listed: that line comes before
 * a request (or a hello) and would hide it. So it counts as a request, which the HTTP parser
 * refuses.
 */
static const char *const methods[] = {
	"ACL",
	"BASELINE-CONTROL",
	"BIND",
	"CHECKIN",
	"CHECKOUT",
	"CONNECT",
	"COPY",
	"DELETE",
	"GET",
	"HEAD",
	"LABEL",
	"LINK",
	"LOCK",
	"M-SEARCH",
	"MERGE",
	"MKACTIVITY",
	"MKCALENDAR",
	"MKCOL",
	"MKREDIRECTREF",
	"MKWORKSPACE",
	"MOVE",
	"NOTIFY",
	"OPTIONS",
	"ORDERPATCH",
	"PATCH",
	"POST",
	"PRI",
	"PROPFIND",
	"PROPPATCH",
	"PROXY",
	"PURGE",
	"PUT",
	"QUERY",
	"REBIND",
	"REPORT",
	"SEARCH",
	"SUBSCRIBE",
	"TRACE",
	"UNBIND",
	"UNCHECKOUT",
	"UNLINK",
	"UNLOCK",
	"UNSUBSCRIBE",
	"UPDATE",
	"UPDATEREDIRECTREF",
	"VERSION-CONTROL",
};

static bool is_graphic(char c)
{
	return c > ' ' && c < 0x7f;
}

/* What servers treat as a blank: some split lines at any white space of Latin-1. */
static bool is_blank(char c)
{
	unsigned char u = (unsigned char)c;

	return u == ' ' || (u >= '\t' && u <= '\r' && u != '\n') || (u >= 0x1c && u <= 0x1f) ||
	       u == 0x85 || u == 0xa0;
}

static bool is_known(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_is(word, methods[i]))
			return true;
	return false;
}

/* The bytes so far are the start of a known method. */
static bool begins_known(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_starts(str_of(methods[i]), word))
			return true;
	return false;
}

/* RFC 9110's syntax of a method. */
static bool is_token(struct str word)
{
	static const struct str marks = STR("!#$%&'*+-.^_`|~");

	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		if (!(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') &&
		    !memchr(marks.p, c, marks.n))
			return false;
	}
	return true;
}

/* A version after anything that could be a blank: a request, whatever its method. */
static bool has_version(struct str line)
{
	static const struct str version = STR("HTTP/");

	for (size_t i = 1; i + version.n <= line.n; i++)
		if (!is_graphic(line.p[i - 1]) &&
		    strncasecmp(line.p + i, version.p, version.n) == 0)
			return true;
	return false;
}

/* The first word, after blanks. */
static struct str word_of(struct str line)
{
	struct str word = { line.p, 0 };

	while (word.p < line.p + line.n && is_blank(*word.p))
		word.p++;
	while (word.p + word.n < line.p + line.n && !is_blank(word.p[word.n]))
		word.n++;
	return word;
}

static bool is_binary(struct str word)
{
	for (size_t i = 0; i < word.n; i++)
		if (!is_graphic(word.p[i]))
			return true;
	return false;
}

/*
 * A known method and a blank start a request. Other words may be methods too, but "EHLO me" and
 * "USER x" start other protocols; there the rest of the line decides. Lenient servers skip empty
 * lines and blanks, and treat more than spaces as blanks. Only what no server takes for HTTP is
 * opaque. No server accepts a method with a control character.
 */
static enum sniff http(struct str first, bool end)
{
	const char *lf = memchr(first.p, '\n', first.n);
	struct str line = { first.p, lf ? (size_t)(lf - first.p) : first.n };
	struct str word;
	bool follows;

	if (first.p[0] == '\r' || first.p[0] == '\n')
		return SNIFF_HTTP;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--; /* or the end of the line has not arrived yet */
	word = word_of(line);
	follows = word.p + word.n < line.p + line.n;
	if (has_version(line) || (follows && is_known(word)))
		return SNIFF_HTTP;
	if (is_binary(word))
		return SNIFF_OTHER;
	if (line.n >= SNIFF_LINE)
		return is_token(word) ? SNIFF_HTTP : SNIFF_OTHER;
	if (lf || end)
		return SNIFF_OTHER;
	return word.n && !follows && begins_known(word) ? SNIFF_LIKELY : SNIFF_MORE;
}

/*
 * An identification line and then a packet, whose length starts with a zero byte. Anything else
 * after the line is judged as if the line were not there: it could be a request.
 */
static enum sniff ssh(struct str first, bool end)
{
	static const struct str mark = STR("SSH-");
	size_t n = first.n < mark.n ? first.n : mark.n;
	const char *lf = memchr(first.p, '\n', first.n);
	struct str line = { first.p, lf ? (size_t)(lf - first.p) : first.n };
	struct str rest;

	if (memcmp(first.p, mark.p, n) != 0 || line.n > SSH_LINE || has_version(line))
		return http(first, end);
	if (!lf)
		return end ? SNIFF_OTHER : SNIFF_LIKELY;
	rest = (struct str){ lf + 1, first.n - line.n - 1 };
	if (rest.n == 0)
		return end ? SNIFF_SSH : SNIFF_GREETING;
	return rest.p[0] == '\0' ? SNIFF_SSH : http(rest, end);
}

enum sniff sniff(struct str first, bool end)
{
	if (first.n == 0)
		return end ? SNIFF_OTHER : SNIFF_MORE;
	if ((unsigned char)first.p[0] == TLS_HANDSHAKE) {
		if (first.n == 1)
			return end ? SNIFF_OTHER : SNIFF_LIKELY;
		if (first.p[1] == TLS_MAJOR)
			return SNIFF_TLS;
	}
	return ssh(first, end);
}
