/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proxy.h"

#include <errno.h>
#include <string.h>

enum { PORT_SOCKS = 1080, PORT_HTTP = 3128 };

static void skip(struct str *s, size_t n)
{
	s->p += n;
	s->n -= n;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'			? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

/* -1 if these are not two hex digits. */
static int hex_byte(const char *two)
{
	int high = hex_digit(two[0]), low = hex_digit(two[1]);

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static int decode(struct str in, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < in.n && r == 0; i++) {
		char c = in.p[i];
		int byte = c == '%' && i + 2 < in.n ? hex_byte(in.p + i + 1) : -1;

		if (byte >= 0) {
			c = (char)byte;
			i += 2;
		}
		r = buf_add(out, &c, 1);
	}
	return r;
}

int proxy_userinfo(struct str userinfo, struct buf *user, struct buf *password)
{
	const char *colon = userinfo.n ? memchr(userinfo.p, ':', userinfo.n) : NULL;
	size_t n = colon ? (size_t)(colon - userinfo.p) : userinfo.n;
	int r = decode((struct str){ userinfo.p, n }, user);

	return r < 0 || !colon ? r
			       : decode((struct str){ colon + 1, userinfo.n - n - 1 }, password);
}

/* Checked when the address is read, so that a bad password is reported early. */
static bool is_userinfo(struct str userinfo)
{
	auto_done(buf_done) struct buf user = BUF_INIT(PROXY_PASSWORD_MOST);
	auto_done(buf_done) struct buf password = BUF_INIT(PROXY_PASSWORD_MOST);

	return proxy_userinfo(userinfo, &user, &password) == 0 && user.len;
}

int proxy_parse(struct str url, struct proxy *ret)
{
	static const struct {
		struct str prefix;
		bool socks;
	} kinds[] = { { STR("http://"), false },
		      { STR("socks5://"), true },
		      { STR("socks5h://"), true },
		      { STR(""), false } };
	struct proxy p = { 0 };
	const char *at, *slash;
	size_t i = 0;

	while (!str_starts(url, kinds[i].prefix))
		i++;
	skip(&url, kinds[i].prefix.n);
	p.socks = kinds[i].socks;
	slash = memchr(url.p, '/', url.n);
	if (slash)
		url.n = (size_t)(slash - url.p);
	at = memrchr(url.p, '@', url.n);
	if (at) {
		p.userinfo = (struct str){ url.p, (size_t)(at - url.p) };
		skip(&url, p.userinfo.n + 1);
	}
	if ((at && !is_userinfo(p.userinfo)) || authority_parse(url, &p.host, &p.port) < 0)
		return -EINVAL;
	if (!p.port)
		p.port = p.socks ? PORT_SOCKS : PORT_HTTP;
	*ret = p;
	return 0;
}
