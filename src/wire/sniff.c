/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sniff.h"

enum { METHOD_MAX = 32, TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 };

static enum sniff starts(struct str first, struct str word, enum sniff what, bool end)
{
	size_t n = first.n < word.n ? first.n : word.n;

	if (memcmp(first.p, word.p, n) != 0)
		return SNIFF_OTHER;
	if (n == word.n)
		return what;
	return end ? SNIFF_OTHER : SNIFF_MORE;
}

static bool is_method_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/*
 * A word and a blank begin a request. Lenient servers skip empty lines and take tabs, so these
 * count too: opaque is only what no server takes for HTTP.
 */
static enum sniff http(struct str first, bool end)
{
	size_t i = 0, word;

	while (i < first.n && (first.p[i] == '\r' || first.p[i] == '\n'))
		i++;
	if (i > 0)
		return SNIFF_HTTP;
	for (word = i; i < first.n && i < METHOD_MAX && is_method_byte(first.p[i]); i++)
		;
	if (i == first.n)
		return end || i >= METHOD_MAX ? SNIFF_OTHER : SNIFF_MORE;
	return i > word && (first.p[i] == ' ' || first.p[i] == '\t') ? SNIFF_HTTP : SNIFF_OTHER;
}

enum sniff sniff(struct str first, bool end)
{
	enum sniff ssh;

	if (first.n == 0)
		return end ? SNIFF_OTHER : SNIFF_MORE;
	if ((unsigned char)first.p[0] == TLS_HANDSHAKE) {
		if (first.n == 1)
			return end ? SNIFF_OTHER : SNIFF_MORE;
		return first.p[1] == TLS_MAJOR ? SNIFF_TLS : SNIFF_OTHER;
	}
	ssh = starts(first, STR("SSH-"), SNIFF_SSH, end);
	if (ssh != SNIFF_OTHER)
		return ssh;
	return http(first, end);
}
