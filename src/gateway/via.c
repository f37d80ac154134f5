/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/via.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/b64.h"
#include "wire/proxy.h"
#include "wire/socks5_client.h"

/* Build the authentication as it is sent: a header value, or the message of RFC 1929. */
static int put_auth(struct via *v, struct str userinfo)
{
	auto_done(buf_done) struct buf user = BUF_INIT(PROXY_PASSWORD_MOST);
	auto_done(buf_done) struct buf password = BUF_INIT(PROXY_PASSWORD_MOST);
	auto_done(buf_done) struct buf both = BUF_INIT(2 * PROXY_PASSWORD_MOST + 1);
	auto_done(buf_done) struct buf coded = BUF_INIT(VIA_AUTH - sizeof "Basic ");

	if (proxy_userinfo(userinfo, &user, &password) < 0)
		return -EINVAL;
	if (v->socks) {
		v->auth_len = socks_password(buf_str(&user), buf_str(&password), (void *)v->auth);
		return v->auth_len ? 0 : -EINVAL;
	}
	if (buf_add_str(&both, buf_str(&user)) < 0 || buf_add(&both, ":", 1) < 0 ||
	    buf_add_str(&both, buf_str(&password)) < 0 || b64_encode(&coded, buf_str(&both)) < 0)
		return -EINVAL;
	v->auth_len = (size_t)snprintf(v->auth, sizeof v->auth, "Basic %s", coded.data);
	return 0;
}

int via_parse(struct via *v, struct str url)
{
	struct proxy p;

	if (proxy_parse(url, &p) < 0)
		return -EINVAL;
	v->socks = p.socks;
	v->host = p.host;
	v->port = p.port;
	v->auth_len = 0;
	if (p.userinfo.n && put_auth(v, p.userinfo) < 0)
		return -EINVAL;
	v->set = true;
	return 0;
}

/* example.com, .example.com and *.example.com all match the name and its subdomains. */
static bool excepts(const char *item, size_t n, const char *name)
{
	size_t len = strlen(name);

	while (n && (*item == '*' || *item == '.')) {
		item++;
		n--;
	}
	if (n == 0 || n > len || strncasecmp(name + len - n, item, n) != 0)
		return false;
	return n == len || name[len - n - 1] == '.';
}

bool via_wanted(const struct via *v, const char *name)
{
	const char *at = v->no_proxy;

	if (!v->set)
		return false;
	if (at && strcmp(at, "*") == 0)
		return false;
	while (at && name && *at) {
		size_t n = strcspn(at, ", ");

		if (n && excepts(at, n, name))
			return false;
		at += n + strspn(at + n, ", ");
	}
	return name != NULL;
}
