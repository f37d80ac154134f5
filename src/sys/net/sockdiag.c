/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/net/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"

enum { CGROUP_ATTR = 21 }; /* INET_DIAG_CGROUP_ID, Linux 5.9 */

struct request {
	struct nlmsghdr h;
	struct inet_diag_req_v2 r;
};

static size_t address_size(uint8_t family)
{
	return family == AF_INET ? 4 : 16;
}

static struct request request(int protocol, const struct sockdiag_end *local,
			      const struct sockdiag_end *remote)
{
	/* The kernel looks up a datagram's socket as for an incoming packet: swap the ends. */
	const struct sockdiag_end *src = protocol == IPPROTO_UDP ? remote : local;
	const struct sockdiag_end *dst = protocol == IPPROTO_UDP ? local : remote;
	static uint32_t seq;
	struct request q = {
		.h = { .nlmsg_len = sizeof q,
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST,
		       .nlmsg_seq = ++seq },
		.r = { .sdiag_family = local->family,
		       .sdiag_protocol = (uint8_t)protocol,
		       .idiag_states = ~0u },
	};

	q.r.id.idiag_sport = htons(src->port);
	q.r.id.idiag_dport = htons(dst->port);
	memcpy(q.r.id.idiag_src, src->addr, address_size(src->family));
	memcpy(q.r.id.idiag_dst, dst->addr, address_size(dst->family));
	q.r.id.idiag_cookie[0] = q.r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return q;
}

static void take_owner(const struct nlmsghdr *h, struct sockdiag_owner *ret)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof *m);

	*ret = (struct sockdiag_owner){ .uid = m->idiag_uid, .inode = m->idiag_inode };
	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == CGROUP_ATTR && RTA_PAYLOAD(a) == sizeof ret->cgroup)
			memcpy(&ret->cgroup, RTA_DATA(a), sizeof ret->cgroup);
}

static int find_exact(int fd, const struct request *q, struct sockdiag_owner *ret)
{
	_Alignas(8) char answer[2048];
	const struct nlmsghdr *h = (const void *)answer;
	int r = netlink_ask(fd, q, sizeof *q, answer, sizeof answer);

	if (r < 0)
		return r;
	if (h->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(h))->error ? -ENOENT : -EBADMSG;
	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
		return -EBADMSG;
	take_owner(h, ret);
	ret->certain = true;
	return 0;
}

/* Collect the candidates of a dump. 1 at its end. */
static int take_dump(const char *data, size_t len, const struct sockdiag_end *local,
		     const struct sockdiag_end *remote, const struct request *q,
		     struct sockdiag_owner *ret, int *found)
{
	const struct nlmsghdr *h = (const void *)data;

	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		const struct inet_diag_msg *m = NLMSG_DATA(h);
		struct sockdiag_owner o;

		if (h->nlmsg_seq != q->h.nlmsg_seq)
			continue;
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return 1;
		if (h->nlmsg_len < NLMSG_LENGTH(sizeof *m))
			return -EBADMSG;
		if (q->r.sdiag_protocol == IPPROTO_TCP
			    ? m->id.idiag_dport != htons(remote->port) ||
				      memcmp(m->id.idiag_dst, remote->addr,
					     address_size(remote->family)) != 0
			    : m->id.idiag_sport != htons(local->port))
			continue;
		take_owner(h, &o);
		if (o.inode == 0)
			continue;
		if (++*found == 1) {
			*ret = o;
			ret->certain = true;
		} else if (o.cgroup != ret->cgroup) {
			ret->certain = false;
		}
	}
	return 0;
}

int sockdiag_find_like(int fd, int protocol, const struct sockdiag_end *local,
		       const struct sockdiag_end *remote, struct sockdiag_owner *ret)
{
	_Alignas(8) char answer[16384];
	struct request q = request(protocol, local, remote);
	int r = 0, found = 0;

	q.h.nlmsg_flags |= NLM_F_DUMP;
	memset(&q.r.id, 0, sizeof q.r.id);
	if (q.r.sdiag_protocol == IPPROTO_TCP)
		q.r.id.idiag_dport = htons(remote->port);
	if (send(fd, &q, sizeof q, 0) < 0)
		return -errno;
	while (r == 0) {
		ssize_t n = recv(fd, answer, sizeof answer, 0);

		if (n < 0)
			return -errno;
		r = take_dump(answer, (size_t)n, local, remote, &q, ret, &found);
	}
	return r < 0 ? r : found ? 0 : -ENOENT;
}

int sockdiag_find(int fd, int protocol, const struct sockdiag_end *local,
		  const struct sockdiag_end *remote, struct sockdiag_owner *ret)
{
	struct request q = request(protocol, local, remote);

	return find_exact(fd, &q, ret);
}
