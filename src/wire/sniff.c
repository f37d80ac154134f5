/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sniff.h"

#include "base/cleanup.h"

enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 };

/* IANA's registry of methods, and what else is common. */
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

static enum sniff starts(struct str first, struct str word, enum sniff what, bool end)
{
	size_t n = first.n < word.n ? first.n : word.n;

	if (memcmp(first.p, word.p, n) != 0)
		return SNIFF_OTHER;
	if (n == word.n)
		return what;
	return end ? SNIFF_OTHER : SNIFF_LIKELY;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_known(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_is(word, methods[i]))
			return true;
	return false;
}

/* What arrived is the beginning of a method. */
static bool begins_known(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (str_starts(str_of(methods[i]), word))
			return true;
	return false;
}

/* What RFC 9110 lets a method be; no server has been seen to wait 4 KiB for the end of another. */
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

/* No server takes a control character in a request's first line. */
static bool is_binary(struct str line)
{
	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < ' ' && line.p[i] != '\t' && line.p[i] != '\r')
			return true;
	return false;
}

/* The version of a request: then it is one, whatever its method. */
static bool has_version(struct str line)
{
	static const struct str version = STR("HTTP/");

	for (size_t i = 1; i + version.n <= line.n; i++)
		if (is_blank(line.p[i - 1]) && memcmp(line.p + i, version.p, version.n) == 0)
			return true;
	return false;
}

/*
 * A method and a blank begin a request. Other words may be methods too; but "EHLO me" and
 * "USER x" begin other protocols, so there the rest of the line decides. Lenient servers skip
 * empty lines and take tabs, so these count: opaque is only what no server takes for HTTP.
 */
static enum sniff http(struct str first, bool end)
{
	const char *lf = memchr(first.p, '\n', first.n);
	struct str line = { first.p, lf ? (size_t)(lf - first.p) : first.n };
	size_t word = 0;

	if (first.p[0] == '\r' || first.p[0] == '\n')
		return SNIFF_HTTP;
	while (word < line.n && line.p[word] > ' ' && line.p[word] < 0x7f)
		word++;
	if (is_binary(line) || (word < line.n && (word == 0 || !is_blank(line.p[word]))))
		return SNIFF_OTHER; /* or one word alone */
	if (is_known((struct str){ line.p, word }) && word < line.n)
		return SNIFF_HTTP;
	if (has_version(line))
		return SNIFF_HTTP;
	if (line.n >= SNIFF_LINE)
		return is_token((struct str){ line.p, word }) ? SNIFF_HTTP : SNIFF_OTHER;
	if (lf || end)
		return SNIFF_OTHER;
	return word == line.n && begins_known(line) ? SNIFF_LIKELY : SNIFF_MORE;
}

enum sniff sniff(struct str first, bool end)
{
	enum sniff ssh;

	if (first.n == 0)
		return end ? SNIFF_OTHER : SNIFF_MORE;
	if ((unsigned char)first.p[0] == TLS_HANDSHAKE) {
		if (first.n == 1)
			return end ? SNIFF_OTHER : SNIFF_LIKELY;
		return first.p[1] == TLS_MAJOR ? SNIFF_TLS : SNIFF_OTHER;
	}
	ssh = starts(first, STR("SSH-"), SNIFF_SSH, end);
	if (ssh != SNIFF_OTHER)
		return ssh;
	return http(first, end);
}
