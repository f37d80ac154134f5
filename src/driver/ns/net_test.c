/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/netplan.h"
#include "sys/net/netlink.h"
#include "sys/net/sockdiag.h"
#include "t.h"

enum { ORIGINAL_DST = 80 };

static struct ns_cell cell;

static void put(const char *path, const char *text)
{
	CHECK(io_write_file(AT_FDCWD, path, text) == 0);
}

/* Enter a network namespace, as a launch child has; without root, in a user namespace. */
static void enter(void)
{
	auto_close int s = FD_NONE;
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	char map[64];

	(void)snprintf(map, sizeof map, "0 %u 1", geteuid());
	if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)) < 0)
		t_skip("no network namespaces here");
	if (geteuid()) {
		put("/proc/self/setgroups", "deny");
		put("/proc/self/uid_map", map);
	}
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(s >= 0 && ioctl(s, SIOCSIFFLAGS, &ifr) == 0);
}

static void begin(void)
{
	int pair[2], knobs;
	const char *what = "";
	struct err e = { 0 };

	enter();
	knobs = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	if (net_child(pair[0], knobs, &what) < 0)
		t_fail(__FILE__, __LINE__, what);
	CHECK(net_receive(pair[1], &cell, &e) == 0);
}

static struct sockaddr_in to4(const char *ip, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, ip, &a.sin_addr) == 1);
	return a;
}

static struct sockaddr_in6 to6(const char *ip, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	CHECK(inet_pton(AF_INET6, ip, &a.sin6_addr) == 1);
	return a;
}

static void every_ipv4_connection_comes_to_the_gateway_with_its_destination(void)
{
	struct sockaddr_in a, was = { 0 }, peer = { 0 }, me = { 0 };
	socklen_t size = sizeof was;
	struct sockdiag_end local = { .family = AF_INET }, remote = { .family = AF_INET };
	struct sockdiag_owner o = { 0 };
	int c, s;

	begin();
	a = to4("93.184.216.34", 443);
	c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (void *)&a, sizeof a) == 0);
	s = accept4(cell.net_fds[NET_TCP4], (void *)&peer, &size, SOCK_CLOEXEC);
	CHECK(s >= 0);
	size = sizeof was;
	CHECK(getsockopt(s, SOL_IP, ORIGINAL_DST, &was, &size) == 0);
	CHECK(was.sin_addr.s_addr == a.sin_addr.s_addr && was.sin_port == a.sin_port);
	size = sizeof me;
	CHECK(getsockname(c, (void *)&me, &size) == 0);
	CHECK(ntohl(me.sin_addr.s_addr) == NETPLAN_SELF4);
	memcpy(local.addr, &peer.sin_addr, 4);
	local.port = ntohs(peer.sin_port);
	memcpy(remote.addr, &was.sin_addr, 4);
	remote.port = 443;
	CHECK(sockdiag_find(cell.net_fds[NET_DIAG], IPPROTO_TCP, &local, &remote, &o) == 0);
	CHECK(o.inode != 0 && o.certain && o.uid == geteuid());
	local.port = 1; /* as if the port had been changed in transit */
	CHECK(sockdiag_find(cell.net_fds[NET_DIAG], IPPROTO_TCP, &local, &remote, &o) == -ENOENT);
	CHECK(sockdiag_find_like(cell.net_fds[NET_DIAG], IPPROTO_TCP, &local, &remote, &o) == 0);
	CHECK(o.inode != 0 && o.certain);
	remote.port = 444;
	CHECK(sockdiag_find_like(cell.net_fds[NET_DIAG], IPPROTO_TCP, &local, &remote, &o) ==
	      -ENOENT);
}

static void every_ipv6_connection_does_too(void)
{
	struct sockaddr_in6 a, was;
	socklen_t size = sizeof was;
	int c, s;

	begin();
	if (cell.net_fds[NET_TCP6] < 0)
		t_skip("no IPv6 here");
	a = to6("2001:db8::5", 8443);
	c = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (void *)&a, sizeof a) == 0);
	s = accept4(cell.net_fds[NET_TCP6], NULL, NULL, SOCK_CLOEXEC);
	CHECK(s >= 0 && getsockopt(s, SOL_IPV6, ORIGINAL_DST, &was, &size) == 0);
	CHECK(memcmp(&was.sin6_addr, &a.sin6_addr, 16) == 0 && was.sin6_port == a.sin6_port);
}

static void a_dns_query_comes_to_the_gateway_whoever_was_asked(void)
{
	struct sockaddr_in a, from;
	socklen_t size = sizeof from;
	struct sockdiag_end local = { .family = AF_INET }, remote = { .family = AF_INET };
	struct sockdiag_owner o = { 0 };
	char b[8];
	int c;

	begin();
	a = to4("8.8.8.8", 53);
	c = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (void *)&a, sizeof a) == 0 && send(c, "query", 5, 0) == 5);
	CHECK(recvfrom(cell.net_fds[NET_UDP4], b, sizeof b, 0, (void *)&from, &size) == 5);
	CHECK(sendto(cell.net_fds[NET_UDP4], "ok", 2, 0, (void *)&from, size) == 2);
	CHECK(recv(c, b, sizeof b, MSG_DONTWAIT) == 2);
	memcpy(local.addr, &from.sin_addr, 4);
	local.port = ntohs(from.sin_port);
	remote.port = 53;
	CHECK(sockdiag_find_like(cell.net_fds[NET_DIAG], IPPROTO_UDP, &local, &remote, &o) == 0);
	CHECK(o.inode != 0);
}

static void other_datagrams_are_refused_at_once(void)
{
	struct sockaddr_in a;
	struct sockaddr_in6 a6;
	int c;

	begin();
	a = to4("8.8.8.8", 443);
	c = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(sendto(c, "quic", 4, 0, (void *)&a, sizeof a) == -1 && errno == EPERM);
	a6 = to6("2001:db8::1", 443);
	c = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (cell.net_fds[NET_TCP6] >= 0)
		CHECK(sendto(c, "quic", 4, 0, (void *)&a6, sizeof a6) == -1 && errno == EPERM);
}

static void loopback_stays_the_sandbox_s_own(void)
{
	struct sockaddr_in a;
	int c, l;

	begin();
	a = to4("127.0.0.1", 3000);
	l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(l, (void *)&a, sizeof a) == 0 && listen(l, 1) == 0);
	c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (void *)&a, sizeof a) == 0);
	CHECK(accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) >= 0);
	a.sin_port = htons(3001);
	c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (void *)&a, sizeof a) == -1 && errno == ECONNREFUSED);
}

T_MAIN(T(every_ipv4_connection_comes_to_the_gateway_with_its_destination),
       T(every_ipv6_connection_does_too), T(a_dns_query_comes_to_the_gateway_whoever_was_asked),
       T(other_datagrams_are_refused_at_once), T(loopback_stays_the_sandbox_s_own))
