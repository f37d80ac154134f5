/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/glob.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

struct row {
	const char *pattern, *text;
	bool want;
};

static void hosts_match_by_label(void)
{
	static const struct row rows[] = {
		{ "example.com", "example.com", true },
		{ "example.com", "xexample.com", false },
		{ "example.com", "example.com.evil.org", false },
		{ "example.com", "a.example.com", false },
		{ "*.example.com", "a.example.com", true },
		{ "*.example.com", "example.com", false },
		{ "*.example.com", "a.b.example.com", false },
		{ "*.example.com", "aexample.com", false },
		{ "**.example.com", "a.b.example.com", true },
		{ "**.example.com", "a.example.com", true },
		{ "**.example.com", "example.com", false },
		{ "**.example.com", "a.example.com.evil.org", false },
		{ "**", "a", true },
		{ "**", "a.b.c", true },
		{ "**", "", false },
		{ "api-*.example.com", "api-1.example.com", true },
		{ "api-*.example.com", "api-.example.com", true },
		{ "api-*.example.com", "api-1.x.example.com", false },
		{ "*a*b.c", "xaybb.c", true },
		{ "*a*b.c", "xayb.d", false },
		{ "ftp.*.debian.org", "ftp.de.debian.org", true },
		{ "ftp.*.debian.org", "ftp.debian.org", false },
		{ "a.**.c", "a.b.c", true },
		{ "a.**.c", "a.c.c.b.c", true },
		{ "a.**.c", "a.c", false },
		{ "**.a.**.b", "x.a.a.y.b", true },
		{ "**.a.**.b", "x.a.b", false },
		{ "**.**", "a", false },
		{ "**.**", "a.b", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (glob_host(str_of(rows[i].pattern), str_of(rows[i].text)) != rows[i].want)
			t_fail_str(__FILE__, (int)i, rows[i].pattern, rows[i].text);
}

static void paths_match_by_segment(void)
{
	static const struct row rows[] = {
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "/a/*", "/a/b", true },
		{ "/a/*", "/a/b/c", false },
		{ "/a/*", "/a/", true },
		{ "/a/**", "/a/b/c", true },
		{ "/a/**", "/a", true },
		{ "/a/**", "/ab", false },
		{ "/**", "/", true },
		{ "/**/x.deb", "/x.deb", true },
		{ "/**/x.deb", "/p/q/x.deb", true },
		{ "/**/x.deb", "/p/q/x.deb.exe", false },
		{ "/dists/**/Release", "/dists/bookworm/Release", true },
		{ "/*.deb", "/a.deb", true },
		{ "/*.deb", "/a/b.deb", false },
		{ "/A", "/a", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (glob_path(str_of(rows[i].pattern), str_of(rows[i].text)) != rows[i].want)
			t_fail_str(__FILE__, (int)i, rows[i].pattern, rows[i].text);
}

/* A slow and simple definition of what a pattern means. */
static bool plain_match(const char *p, const char *t)
{
	if (strncmp(p, "**", 2) == 0) {
		for (const char *rest = t; *rest; rest++)
			if ((rest[1] == '.' || !rest[1]) &&
			    (p[2] ? rest[1] && plain_match(p + 3, rest + 2) : !rest[1]))
				return true;
		return false;
	}
	if (*p == '*')
		return plain_match(p + 1, t) || (*t && *t != '.' && plain_match(p, t + 1));
	if (!*p || !*t)
		return *p == *t;
	return *p == *t && plain_match(p + 1, t + 1);
}

static void random_word(char *out, unsigned *seed, const char *const *labels, unsigned n)
{
	size_t at = 0;
	unsigned count = 1 + (unsigned)rand_r(seed) % 4;

	for (unsigned i = 0; i < count; i++)
		at += (size_t)snprintf(out + at, 64 - at, "%s%s", i ? "." : "",
				       labels[(unsigned)rand_r(seed) % n]);
}

static void random_patterns_match_the_definition(void)
{
	static const char *const patterns[] = { "a", "b", "ab", "*", "**", "a*", "*b" };
	static const char *const labels[] = { "a", "b", "ab", "aab" };
	unsigned seed = 7, matched = 0;
	char p[64] = "", t[64] = "";

	for (int i = 0; i < 200000; i++) {
		bool want;

		random_word(p, &seed, patterns, ARRAY_LEN(patterns));
		random_word(t, &seed, labels, ARRAY_LEN(labels));
		want = plain_match(p, t);
		matched += want;
		if (glob_host(str_of(p), str_of(t)) != want)
			t_fail_str(__FILE__, __LINE__, p, t);
	}
	CHECK(matched > 1000);
}

static void stars_take_proportional_time(void)
{
	static char pattern[253], name[253];

	for (size_t i = 0; i < sizeof pattern; i++) {
		pattern[i] = i % 2 ? '*' : 'a';
		name[i] = i % 50 == 49 ? '.' : 'a';
	}
	for (int i = 0; i < 1000; i++)
		CHECK(!glob_host((struct str){ pattern, sizeof pattern },
				 (struct str){ name, sizeof name }));
}

static void patterns_become_canonical_or_are_refused(void)
{
	static const char *const bad[] = { "",	       "*",	 "a.**b", "***",   "a..b",
					   "1.2.3.4",  "*.1",	 "a b",	  "**a.b", "b\xc3\xbc.de",
					   "http://a", "a.b:80", "-*.a" };
	char out[HOST_TEXT];
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(glob_host_parse(str_of(bad[i]), out, &why) == -EINVAL);
		CHECK(why[0] && !out[0]);
	}
	CHECK(glob_host_parse(STR("*.Example.COM."), out, &why) == 0);
	CHECK_STR(out, "*.example.com");
	CHECK(glob_host_parse(STR("**"), out, &why) == 0);
}

T_MAIN(T(hosts_match_by_label), T(paths_match_by_segment), T(random_patterns_match_the_definition),
       T(stars_take_proportional_time), T(patterns_become_canonical_or_are_refused))
