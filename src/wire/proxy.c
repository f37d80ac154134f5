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
	if ((p.socks && at) || authority_parse(url, &p.host, &p.port) < 0)
		return -EINVAL;
	if (!p.port)
		p.port = p.socks ? PORT_SOCKS : PORT_HTTP;
	*ret = p;
	return 0;
}
