/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/glob.h"

#include <errno.h>

/* '*' matches any text; both arguments are one label or segment. */
static bool match_part(struct str pattern, struct str text)
{
	size_t p = 0, t = 0, star = pattern.n, again = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			again = t;
		} else if (p < pattern.n && pattern.p[p] == text.p[t]) {
			p++;
			t++;
		} else if (star < pattern.n) {
			p = star + 1;
			t = ++again;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

/* A list of parts, read from the front. */
struct parts {
	struct str rest;
	char sep;
	bool more;
};

static struct str parts_next(struct parts *l)
{
	const char *end = l->rest.n ? memchr(l->rest.p, l->sep, l->rest.n) : NULL;
	struct str part = { l->rest.p, end ? (size_t)(end - l->rest.p) : l->rest.n };

	l->more = end != NULL;
	l->rest.p += part.n + (end != NULL);
	l->rest.n -= part.n + (end != NULL);
	return part;
}

/*
 * Match parts against parts. '**' first takes as few parts as possible. If the rest does not match,
 * the last '**' takes one more. No other backtracking is needed: the last '**' can take whatever an
 * earlier one could.
 */
static bool match_parts(struct parts pattern, struct parts text, bool none)
{
	struct parts after = { 0 }, again = { 0 };
	bool retry = false;

	while (text.more) {
		struct parts p = pattern;
		struct str part = p.more ? parts_next(&p) : STR_NONE;

		if (pattern.more && str_eq(part, STR("**"))) {
			if (!none)
				(void)parts_next(&text);
			pattern = after = p;
			again = text;
			retry = true;
			continue;
		}
		if (pattern.more) {
			struct parts t = text;

			if (match_part(part, parts_next(&t))) {
				pattern = p;
				text = t;
				continue;
			}
		}
		if (!retry || !again.more)
			return false;
		(void)parts_next(&again);
		pattern = after;
		text = again;
	}
	while (none && pattern.more)
		if (!str_eq(parts_next(&pattern), STR("**")))
			return false;
	return !pattern.more;
}

static bool match(struct str pattern, struct str text, char sep, bool none)
{
	return match_parts((struct parts){ pattern, sep, true }, (struct parts){ text, sep, true },
			   none);
}

bool glob_host(struct str pattern, struct str name)
{
	return name.n > 0 && match(pattern, name, '.', false);
}

bool glob_path(struct str pattern, struct str path)
{
	return path.n > 0 && match(pattern, path, '/', true);
}

static bool has_stars_only_as_label(struct str pattern)
{
	struct parts l = { pattern, '.', true };

	while (l.more) {
		struct str part = parts_next(&l);

		for (size_t i = 0; i + 1 < part.n; i++)
			if (part.p[i] == '*' && part.p[i + 1] == '*' && part.n != 2)
				return false;
	}
	return true;
}

int glob_host_parse(struct str text, char out[HOST_TEXT], const char **ret_why)
{
	char name[HOST_TEXT + 1];
	size_t n = text.n;
	int r;

	*ret_why = "is not a host name or host pattern";
	out[0] = '\0';
	if (n == 0 || n >= HOST_TEXT)
		return -EINVAL;
	if (str_is(text, "*")) {
		*ret_why = "matches only names of one label; write '**' to match every name";
		return -EINVAL;
	}
	/* With letters instead of stars it must be a name. "x" keeps "*.1" ending in a number. */
	for (size_t i = 0; i < n; i++)
		name[i] = text.p[i] == '*' ? 'x' : text.p[i];
	r = host_name((struct str){ name, n }, out);
	if (r < 0) {
		if (r == -EADDRNOTAVAIL)
			*ret_why = "is an address; write it under 'addresses'";
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)text.p[i] >= 0x80)
				*ret_why =
					"has letters beyond ASCII; write it in punycode (xn--...)";
		out[0] = '\0';
		return -EINVAL;
	}
	for (size_t i = 0; out[i]; i++)
		if (text.p[i] == '*')
			out[i] = '*';
	if (!has_stars_only_as_label(str_of(out))) {
		*ret_why = "has '**' that is not a whole label";
		out[0] = '\0';
		return -EINVAL;
	}
	return 0;
}
