/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/net/route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "sys/net/netlink.h"

int route_is_local(int fd, const uint8_t *addr, size_t size)
{
	struct rtmsg m = { .rtm_family = size == 4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (uint8_t)(size * 8) };
	_Alignas(8) char answer[4096];
	const struct nlmsghdr *h = (const void *)answer;
	struct netlink n = { .len = 0 };
	static uint32_t seq;
	int r;

	n.seq = ++seq;
	netlink_begin(&n, RTM_GETROUTE, 0, &m, sizeof m);
	netlink_put(&n, RTA_DST, addr, size);
	netlink_end(&n);
	r = netlink_ask(fd, n.data, n.len, answer, sizeof answer);
	if (r < 0)
		return r;
	if (h->nlmsg_type == NLMSG_ERROR) {
		int err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;

		return err ? err : -EBADMSG;
	}
	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof m))
		return -EBADMSG;
	return ((const struct rtmsg *)NLMSG_DATA(h))->rtm_type == RTN_LOCAL;
}
