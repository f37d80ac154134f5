/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/netplan.h"
#include "sys/net/netlink.h"
#include "sys/net/nft.h"
#include "sys/ns/userns.h"
#include "sys/process/fdpass.h"

enum { LO = 1, BACKLOG = 1024, PACKET_MOST = 511 * 1024 };

/* Link attributes newer than some headers: Linux 5.19 for IPv6, 6.3 for IPv4. */
enum { GSO_MAX = 41, GRO_MAX = 58, GSO_IPV4_MAX = 63, GRO_IPV4_MAX = 64 };

static void put_address(struct netlink *n, int family, const void *address, size_t size)
{
	struct ifaddrmsg m = {
		.ifa_family = (uint8_t)family,
		.ifa_prefixlen = (uint8_t)(size * 8),
		.ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = LO,
	};

	netlink_begin(n, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
	netlink_put(n, IFA_LOCAL, address, size);
	netlink_put(n, IFA_ADDRESS, address, size);
	netlink_end(n);
}

/* Every address is local; packets to it are sent from `self`. */
static void put_route(struct netlink *n, int family, const void *self, size_t size)
{
	struct rtmsg m = {
		.rtm_family = (uint8_t)family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};

	netlink_begin(n, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
	netlink_u32(n, RTA_OIF, LO);
	netlink_put(n, RTA_PREFSRC, self, size);
	netlink_end(n);
}

static int route_all(int fd, int family)
{
	const uint32_t self4 = htonl(NETPLAN_SELF4), gateway4 = htonl(NETPLAN_GATEWAY4);
	struct netlink n = { .len = 0 };
	int r;

	if (family == AF_INET) {
		put_address(&n, family, &self4, sizeof self4);
		put_address(&n, family, &gateway4, sizeof gateway4);
	} else {
		put_address(&n, family, netplan_self6, sizeof netplan_self6);
		put_address(&n, family, netplan_gateway6, sizeof netplan_gateway6);
	}
	r = netlink_talk(&n, fd);
	if (r < 0)
		return r;
	if (family == AF_INET)
		put_route(&n, family, &self4, sizeof self4);
	else
		put_route(&n, family, netplan_self6, sizeof netplan_self6);
	return netlink_talk(&n, fd);
}

/* Let one send pass lo in one piece. Otherwise pieces have 64 KiB, which works too. */
static void widen(int fd)
{
	static const uint16_t sizes[] = { GSO_MAX, GRO_MAX, GSO_IPV4_MAX, GRO_IPV4_MAX };
	struct ifinfomsg m = { .ifi_family = AF_UNSPEC, .ifi_index = LO };
	struct netlink n = { .len = 0 };

	netlink_begin(&n, RTM_SETLINK, NLM_F_ACK, &m, sizeof m);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		netlink_u32(&n, sizes[i], PACKET_MOST);
	netlink_end(&n);
	(void)netlink_talk(&n, fd);
}

static int listener(int family, int type, uint16_t port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(NETPLAN_GATEWAY4) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const struct sockaddr *a = family == AF_INET ? (void *)&a4 : (void *)&a6;
	auto_close int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(&a6.sin6_addr, netplan_gateway6, sizeof a6.sin6_addr);
	if (fd < 0 || bind(fd, a, family == AF_INET ? sizeof a4 : sizeof a6) < 0)
		return -errno;
	if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_sockets(int fds[NET_FDS], bool ipv6)
{
	int n = 0;

	fds[NET_DIAG] = netlink_open(NETLINK_SOCK_DIAG);
	fds[NET_TCP4] = listener(AF_INET, SOCK_STREAM, NETPLAN_PORT_TCP);
	fds[NET_UDP4] = listener(AF_INET, SOCK_DGRAM, NETPLAN_PORT_DNS);
	if (ipv6) {
		fds[NET_TCP6] = listener(AF_INET6, SOCK_STREAM, NETPLAN_PORT_TCP);
		fds[NET_UDP6] = listener(AF_INET6, SOCK_DGRAM, NETPLAN_PORT_DNS);
	}
	for (n = 0; n < NET_FDS; n++)
		if (fds[n] < 0 && (ipv6 || n < NET_TCP6))
			return fds[n];
	return 0;
}

/*
 * Connections of a sandbox never leave this kernel, so no packets remain after they close. Let the
 * rules forget them soon, or many short connections fill the conntrack table.
 */
static void forget_soon(int knobs_fd)
{
	static const char dir[] = "net/netfilter/nf_conntrack_tcp_timeout_";
	static const char *const states[] = { "time_wait", "close", "close_wait", "fin_wait",
					      "last_ack" };
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		(void)snprintf(path, sizeof path, "%s%s", dir, states[i]);
		(void)io_write_file(knobs_fd, path, "2");
	}
}

/*
 * A connection's owner is known as long as its socket is complete. If a program connects, writes
 * and ends, the kernel keeps only the addresses. But if it must keep such sockets for more than a
 * minute, it keeps them complete beyond that time (Linux 6.18, tcp_rcv_state_process).
 */
static int remember_owners(int knobs_fd)
{
	return io_write_file(knobs_fd, "net/ipv4/tcp_fin_timeout", "70");
}

int net_ease(const struct cell_spec *s, int knobs_fd)
{
	/* Group ids as seen where this runs: outside or, if rootless, in U1. */
	uint32_t first = s->rootful ? s->uid_base : 0;
	uint32_t last = s->rootful ? first + USERNS_IDS - 1 : 0;
	char groups[32];
	int r = io_write_file(knobs_fd, "net/ipv4/ip_unprivileged_port_start", "0");

	if (r < 0 && r != -ENOENT)
		return r;
	(void)snprintf(groups, sizeof groups, "%u %u", first, last);
	r = io_write_file(knobs_fd, "net/ipv4/ping_group_range", groups);
	return r == -ENOENT ? 0 : r;
}

static void close_all(int fds[NET_FDS])
{
	for (int i = 0; i < NET_FDS; i++)
		fd_close(&fds[i]);
}

static int set_up(int knobs_fd, int fds[NET_FDS], int *ret_n, const char **what)
{
	auto_close int rt = netlink_open(NETLINK_ROUTE);
	bool ipv6;
	int r;

	*what = "route all addresses to the gateway";
	r = rt < 0 ? rt : route_all(rt, AF_INET);
	if (r < 0)
		return r;
	ipv6 = route_all(rt, AF_INET6) == 0; /* the host may have disabled it */
	widen(rt);
	*what = "make the gateway's sockets";
	r = open_sockets(fds, ipv6);
	if (r < 0)
		return r;
	*what = "write the network rules (nf_tables with nat)";
	r = nft_lead_to_gateway(ipv6);
	if (r < 0)
		return r;
	forget_soon(knobs_fd);
	*ret_n = ipv6 ? NET_FDS : NET_TCP6;
	*what = "have closed sockets kept (net/ipv4/tcp_fin_timeout)";
	return remember_owners(knobs_fd);
}

int net_child(int to, int knobs_fd, const char **what)
{
	int fds[NET_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE }, n = 0, r;

	if (to < 0)
		return 0;
	r = set_up(knobs_fd, fds, &n, what);
	if (r == 0) {
		*what = "pass the gateway's sockets on";
		r = fdpass_send(to, "n", 1, fds, n);
	}
	close_all(fds);
	return r;
}

int net_receive(int from, struct ns_cell *c, struct err *e)
{
	int n = 0, r;
	char byte;

	r = fdpass_recv(from, &byte, 1, c->net_fds, NET_FDS, &n);
	for (int i = r < 0 ? 0 : n; i < NET_FDS; i++)
		c->net_fds[i] = FD_NONE;
	if (r < 0 || n < NET_TCP6)
		return err_set(e, ERR_FAILED, "the sandbox passed no sockets for its gateway");
	return 0;
}

void net_done(struct ns_cell *c)
{
	close_all(c->net_fds);
}
