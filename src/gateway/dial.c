/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dial.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/b64.h"
#include "policy/address.h"
#include "sys/route.h"
#include "wire/proxy.h"

/* A rule for exactly this address, and not for a range that happens to hold it. */
static bool names_exactly(const struct policy_rule *r, const struct ip *ip)
{
	for (size_t i = 0; r && i < r->naddresses; i++)
		if (r->addresses[i].bits == ip->len * 8 && ip_eq(&r->addresses[i].ip, ip))
			return true;
	return false;
}

void dial_allowed(struct gateway *g, const struct policy_query *q, struct policy_verdict *ret)
{
	struct ip ip = ip_plain(q->addr);
	struct address_info info = address_classify(&ip);

	policy_decide(g->policy, q, ret);
	if (ret->kind == POLICY_DENY)
		return;
	if (info.class == ADDRESS_NEVER) {
		*ret = (struct policy_verdict){ .kind = POLICY_DENY, .reason = REASON_NEVER };
		return;
	}
	if (!names_exactly(ret->rule, &ip) && route_is_local(g->route_fd, ip.b, ip.len) == 1)
		*ret = (struct policy_verdict){ .kind = POLICY_DENY, .reason = REASON_NEVER };
}

/* On this host a connection is open when connect(2) has returned, though it says it is not yet. */
static bool has_peer(int fd)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;

	return getpeername(fd, (void *)&sa, &n) == 0;
}

int dial_start(const struct ip *ip, uint16_t port, bool *ret_open)
{
	struct sockaddr_storage sa;
	socklen_t n = ip_to_sockaddr(ip, port, &sa);
	int on = 1;
	auto_close int fd =
		socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (n == 0)
		return -EAFNOSUPPORT;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (void *)&sa, n) < 0 && errno != EINPROGRESS)
		return -errno;
	*ret_open = has_peer(fd);
	return TAKE_FD(fd);
}

void dial_keep(int fd)
{
	int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'			? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

/* -1 where these are not two digits. */
static int hex_byte(const char *two)
{
	int high = hex_digit(two[0]), low = hex_digit(two[1]);

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static int put_auth(struct via *v, struct str userinfo)
{
	auto_done(buf_done) struct buf plain = BUF_INIT(256), coded = BUF_INIT(sizeof v->auth - 8);

	for (size_t i = 0; i < userinfo.n; i++) {
		char c = userinfo.p[i];
		int byte = c == '%' && i + 2 < userinfo.n ? hex_byte(userinfo.p + i + 1) : -1;

		if (byte >= 0) {
			c = (char)byte;
			i += 2;
		}
		if (buf_add(&plain, &c, 1) < 0)
			return -EINVAL;
	}
	if (b64_encode(&coded, buf_str(&plain)) < 0)
		return -EINVAL;
	(void)snprintf(v->auth, sizeof v->auth, "Basic %s", coded.len ? coded.data : "");
	return 0;
}

int via_parse(struct via *v, struct str url)
{
	struct proxy p;

	if (proxy_parse(url, &p) < 0 || (p.userinfo.n && put_auth(v, p.userinfo) < 0))
		return -EINVAL;
	v->socks = p.socks;
	v->host = p.host;
	v->port = p.port;
	v->set = true;
	return 0;
}

/* example.com, .example.com and *.example.com all stand for the name and what is below it. */
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
