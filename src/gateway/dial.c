/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "policy/address.h"
#include "sys/route.h"

/* A rule for exactly this address, and not for a range that happens to hold it. */
static bool names_exactly(const struct policy_rule *r, const struct ip *ip)
{
	for (size_t i = 0; r && i < r->naddresses; i++)
		if (r->addresses[i].bits == ip->len * 8 && ip_eq(&r->addresses[i].ip, ip))
			return true;
	return false;
}

/* Where the kernel does not say, it may be. To what has no route nothing can be sent anyway. */
static bool may_be_local(struct gateway *g, const struct ip *ip)
{
	int r = route_is_local(g->route_fd, ip->b, ip->len);

	return r != 0 && r != -ENETUNREACH && r != -EHOSTUNREACH;
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
	if (!names_exactly(ret->rule, &ip) && may_be_local(g, &ip))
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
