/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "policy/address.h"

/* True for a rule that names exactly this address; a range that contains it does not count. */
static bool names_exactly(const struct policy_rule *r, const struct ip *ip)
{
	for (size_t i = 0; r && i < r->naddresses; i++)
		if (r->addresses[i].bits == ip->len * 8 && ip_eq(&r->addresses[i].ip, ip))
			return true;
	return false;
}

void dial_verdict(const struct policy *p, const struct policy_query *q, bool local,
		  struct policy_verdict *ret)
{
	struct ip ip = ip_plain(q->addr);
	struct address_info info = address_classify(&ip);

	policy_decide(p, q, ret);
	if (ret->kind == POLICY_DENY)
		return;
	if (info.class == ADDRESS_NEVER || (local && !names_exactly(ret->rule, &ip)))
		*ret = (struct policy_verdict){ .kind = POLICY_DENY, .reason = REASON_NEVER };
}

/*
 * The kernel takes a socket for connecting until somebody calls connect(2) again. If the peer
 * resets such a socket, it becomes an unconnected one, which MSG_FASTOPEN connects to any address.
 * After the second call it stays connected or dead. -EALREADY: it is not connected yet.
 */
static int finish(int fd, const struct sockaddr_storage *sa, socklen_t n)
{
	return connect(fd, (const void *)sa, n) == 0 || errno == EISCONN ? 0 : -errno;
}

/* To an address of this host the connection is established although connect(2) said EINPROGRESS. */
int dial_start(const struct ip *ip, uint16_t port, bool *ret_open)
{
	struct sockaddr_storage sa;
	socklen_t n = ip_to_sockaddr(ip, port, &sa);
	int on = 1, r;
	auto_close int fd =
		socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (n == 0)
		return -EAFNOSUPPORT;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (void *)&sa, n) < 0 && errno != EINPROGRESS)
		return -errno;
	r = finish(fd, &sa, n);
	if (r < 0 && r != -EALREADY)
		return r;
	*ret_open = r == 0;
	return TAKE_FD(fd);
}

int dial_finish(int fd)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	int err = 0;
	socklen_t size = sizeof err;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		return -errno;
	if (err)
		return -err;
	return getpeername(fd, (void *)&sa, &n) < 0 ? -errno : finish(fd, &sa, n);
}

void dial_keep(int fd)
{
	int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}
