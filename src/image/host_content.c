/* SPDX-License-Identifier: Apache-2.0 */
/* Find keys, passwords and tokens in a file's content. */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/host_filter.h"

static bool has(struct str content, const char *text)
{
	return content.p && memmem(content.p, content.n, text, strlen(text)) != NULL;
}

/* One of these bytes ends the user part of an address. */
static bool ends_authority(char c)
{
	return (unsigned char)c <= ' ' || c == '/' || c == '?' || c == '#' || c == '"' ||
	       c == '\'' || c == '<' || c == '>';
}

/* s starts after "://". True for a user with a password, or a name long enough to be a token. */
static bool is_user_with_secret(struct str s)
{
	enum { TOKEN_MIN = 16 };
	bool colon = false;

	for (size_t i = 0; i < s.n && !ends_authority(s.p[i]); i++) {
		if (s.p[i] == '@')
			return colon || i >= TOKEN_MIN;
		colon |= s.p[i] == ':';
	}
	return false;
}

static bool has_url_with_secret(struct str content)
{
	for (;;) {
		const char *at = content.n ? memmem(content.p, content.n, "://", 3) : NULL;

		if (!at)
			return false;
		content.n -= (size_t)(at + 3 - content.p);
		content.p = at + 3;
		if (is_user_with_secret(content))
			return true;
	}
	return false;
}

static bool is_npm_with_secret(const char *path, struct str content)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strstr(name, "npmrc") && !strstr(name, "yarnrc"))
		return false;
	return has(content, "_auth") || has(content, "_password") || has(content, "AuthToken") ||
	       has(content, "AuthIdent");
}

static bool is_name_char(char c)
{
	return isupper((unsigned char)c) || isdigit((unsigned char)c) || c == '_';
}

/* True if a real value follows: not empty, a variable, a path or a structure. */
static bool has_value(struct str rest)
{
	size_t at = 0;

	while (at < rest.n && (rest.p[at] == ' ' || rest.p[at] == '\t'))
		at++;
	while (at < rest.n && (rest.p[at] == '"' || rest.p[at] == '\''))
		at++;
	return at < rest.n && rest.p[at] > ' ' && !strchr("$/;{}[]<>*!|&%#", rest.p[at]);
}

/* True if this variable and its value are a secret. */
static bool is_secret_value(struct str name, struct str rest)
{
	static const char *const words[] = { "TOKEN",	"SECRET",     "PASSWORD",   "PASSWD",
					     "API_KEY", "APIKEY",     "ACCESS_KEY", "PRIVATE_KEY",
					     "AUTHKEY", "CREDENTIALS" };
	if (rest.n == 0 || rest.p[0] == ' ' || !has_value(rest))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (has(name, words[i]))
			return true;
	return false;
}

/* NAME=VALUE, as in shells and unit files. */
static bool has_secret_variable(struct str content)
{
	for (size_t i = 0; i < content.n; i++) {
		size_t begin = i;

		if (content.p[i] != '=')
			continue;
		while (begin > 0 && is_name_char(content.p[begin - 1]))
			begin--;
		if (is_secret_value((struct str){ content.p + begin, i - begin },
				    (struct str){ content.p + i + 1, content.n - i - 1 }))
			return true;
	}
	return false;
}

/* True if a line of settings has a word that is followed by a password. */
static bool is_secret_setting(struct str line, bool colon)
{
	static const char *const words[] = { "password", "auth_token", "api_key",
					     "apikey",	 "secret_key", "client_secret" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]), at;
		const char *p = memmem(line.p, line.n, words[i], n);

		if (!p)
			continue;
		at = (size_t)(p - line.p) + n;
		while (at < line.n && (line.p[at] == ' ' || line.p[at] == '\t'))
			at++;
		if (at < line.n && (line.p[at] == '=' || (colon && line.p[at] == ':')) &&
		    has_value((struct str){ line.p + at + 1, line.n - at - 1 }))
			return true;
	}
	return false;
}

/* `password = x`, or outside /etc also `password: x`; not in a comment. */
static bool has_secret_setting(const char *path, struct str content)
{
	bool is_words = strstr(path, "locale") || strstr(path, "i18n") || strstr(path, "lang");
	bool colon = strncmp(path, "etc/", 4) != 0 && !is_words;

	while (content.n > 0) {
		const char *end = memchr(content.p, '\n', content.n);
		size_t n = end ? (size_t)(end - content.p) : content.n, skip = 0;

		while (skip < n && (content.p[skip] == ' ' || content.p[skip] == '\t'))
			skip++;
		if (skip < n && !strchr("#;/<", content.p[skip]) &&
		    is_secret_setting((struct str){ content.p + skip, n - skip }, colon))
			return true;
		content.p += n + (end != NULL);
		content.n -= n + (end != NULL);
	}
	return false;
}

/* An XML element with a value, outside comments. */
static bool has_xml_password(struct str content)
{
	static const char *const names[] = { "<password>", "<passphrase>", "<privateKey>" };

	for (size_t i = 0; i < content.n; i++) {
		struct str rest = { content.p + i, content.n - i };

		if (str_starts(rest, STR("<!--"))) {
			const char *end = memmem(rest.p, rest.n, "-->", 3);

			if (!end)
				return false;
			i = (size_t)(end - content.p);
			continue;
		}
		for (size_t j = 0; j < ARRAY_LEN(names); j++)
			if (str_starts(rest, str_of(names[j])))
				return true;
	}
	return false;
}

const char *host_filter_content(const char *path, struct str content)
{
	if (has(content, "PRIVATE KEY-----"))
		return "holds a private key";
	if (has_url_with_secret(content))
		return "holds an address with a password";
	if (is_npm_with_secret(path, content) || has_secret_variable(content))
		return "holds a token";
	if (has_xml_password(content) || has_secret_setting(path, content))
		return "holds a password";
	if (has(content, "extraheader =") || has(content, "access-tokens ="))
		return "holds a token";
	return NULL;
}
