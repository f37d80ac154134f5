/* SPDX-License-Identifier: Apache-2.0 */
/* The network as it was given: nothing to change, nobody to reach. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probe.h"

enum { NEW_BUFFERS = 33 /* SO_RCVBUFFORCE */, IPT_INFO = 64, REPAIR = 19 };

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };

	(void)inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int device(const struct check *c)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_name = "lo" };
	struct sockaddr_in a = address("127.0.0.1", 0);

	if (c->nr == SIOCSIFADDR)
		memcpy(&r.ifr_addr, &a, sizeof a);
	else if (c->nr == SIOCSIFMTU)
		r.ifr_mtu = 60000;
	else
		r.ifr_flags = IFF_UP;
	return fd < 0 ? -errno : result(ioctl(fd, (int)c->nr, &r));
}

static int route(const struct check *c)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = address("198.51.100.0", 0), mask = address("255.255.255.0", 0);
	char lo[] = "lo";
	struct rtentry r = { .rt_flags = RTF_UP, .rt_dev = lo };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	(void)c;
	memcpy(&r.rt_dst, &to, sizeof to);
	memcpy(&r.rt_genmask, &mask, sizeof mask);
	(void)ioctl(fd, SIOCSIFFLAGS, &up);
	return fd < 0 ? -errno : result(ioctl(fd, SIOCADDRT, &r));
}

/* A message to the kernel's routing, which the filter lets through; its answer. */
static int ask(const void *message, size_t n)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[1024];
	} answer;

	if (fd < 0 || send(fd, message, n, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0)
		return -errno;
	return answer.h.nlmsg_type == NLMSG_ERROR ? answer.e.error : -EPROTO;
}

static int link_by_message(const struct check *c)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
		struct rtattr a;
		unsigned mtu;
	} m = { .h = { .nlmsg_len = sizeof m,
		       .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.i = { .ifi_index = 1 },
		.a = { .rta_len = sizeof m.a + sizeof m.mtu, .rta_type = IFLA_MTU },
		.mtu = 60001 };

	(void)c;
	return ask(&m, sizeof m);
}

static int address_by_message(const struct check *c)
{
	struct {
		struct nlmsghdr h;
		struct ifaddrmsg i;
		struct rtattr a;
		unsigned char ip[4];
	} m = { .h = { .nlmsg_len = sizeof m,
		       .nlmsg_type = RTM_NEWADDR,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.i = { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1 },
		.a = { .rta_len = sizeof m.a + 4, .rta_type = IFA_LOCAL },
		.ip = { 198, 51, 100, 1 } };

	(void)c;
	return ask(&m, sizeof m);
}

static int rule_by_message(const struct check *c)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
	} m = { .h = { .nlmsg_len = sizeof m,
		       .nlmsg_type = RTM_NEWRULE,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.r = { .rtm_family = AF_INET,
		       .rtm_table = RT_TABLE_MAIN,
		       .rtm_type = 1 /* FR_ACT_TO_TBL */ } };

	(void)c;
	return ask(&m, sizeof m);
}

static int qdisc_by_message(const struct check *c)
{
	struct {
		struct nlmsghdr h;
		struct tcmsg t;
		struct rtattr a;
		char kind[8];
	} m = { .h = { .nlmsg_len = sizeof m,
		       .nlmsg_type = RTM_NEWQDISC,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.t = { .tcm_ifindex = 1, .tcm_parent = 0xffffffff },
		.a = { .rta_len = sizeof m.a + 6, .rta_type = 1 /* TCA_KIND */ },
		.kind = "pfifo" };

	(void)c;
	return ask(&m, sizeof m);
}

/* a: family, type, level, option */
static int option(const struct check *c)
{
	int fd = socket((int)c->a[0], (int)c->a[1] | SOCK_CLOEXEC, 0), one = 7;

	return fd < 0 ? -errno
		      : result(setsockopt(fd, (int)c->a[2], (int)c->a[3], &one, sizeof one));
}

static int tables(const struct check *c)
{
	char info[84] = "filter";
	socklen_t n = sizeof info;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)c;
	return fd < 0 ? -errno : result(getsockopt(fd, SOL_IP, IPT_INFO, info, &n));
}

static int host_port(const struct check *c)
{
	struct sockaddr_in a = address(c->path, (int)param_number("TCP_PORT"));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : result(connect(fd, (struct sockaddr *)&a, sizeof a));
}

/* Only a look for a way: nothing is sent. */
static int way(const struct check *c)
{
	struct sockaddr_in a = address(c->path, 9);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : result(connect(fd, (struct sockaddr *)&a, sizeof a));
}

#define NOWHERE "ENETUNREACH|ECONNREFUSED|EPERM|EACCES"

/* clang-format off */
static const struct check checks[] = {
	{ "lo-flags", "the device's flags", device, NS, .bare = "EPERM", .nr = SIOCSIFFLAGS },
	{ "lo-address", "the device's address", device, NS, .bare = "EPERM", .nr = SIOCSIFADDR },
	{ "lo-mtu", "the device's packets", device, NS, .bare = "EPERM", .nr = SIOCSIFMTU },
	{ "route-add", "a route", route, NS, .bare = "EPERM" },
	{ "message-link", "the device, by message", link_by_message, NS, .bare = "EPERM" },
	{ "message-address", "an address, by message", address_by_message, NS, .bare = "EPERM" },
	{ "message-rule", "a rule of routing, by message", rule_by_message, NS, .lacks = "EOPNOTSUPP", .bare = "EPERM|EOPNOTSUPP" },
	{ "message-qdisc", "a queue of packets, by message", qdisc_by_message, NS, .lacks = "ENOENT|EOPNOTSUPP", .bare = "EPERM|EOPNOTSUPP" },
	{ "option-mark", "marked packets", option, NS, .bare = "EPERM", .a = { AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_MARK } },
	{ "option-priority", "packets before others'", option, NS, .bare = "EPERM", .a = { AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_PRIORITY } },
	{ "option-debug", "debugging of a socket", option, ROOT, .dev = "EACCES|EPERM", .bare = "EACCES|EPERM", .a = { AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_DEBUG } },
	{ "option-buffer", "a buffer above the limit", option, ROOT, .bare = "EPERM", .a = { AF_INET, SOCK_DGRAM, SOL_SOCKET, NEW_BUFFERS } },
	{ "option-transparent", "addresses of others", option, NS, .bare = "EPERM", .a = { AF_INET, SOCK_DGRAM, SOL_IP, IP_TRANSPARENT } },
	{ "option-repair", "a connection out of nothing", option, NS, .allowed = "ok|EINVAL", .bare = "EPERM", .a = { AF_INET, SOCK_STREAM, SOL_TCP, REPAIR } },
	{ "tables", "the packet filter's tables", tables, NS, .allowed = "ok|ENOENT", .lacks = NOT_BUILT, .dev = "EPERM|ENOPROTOOPT", .bare = "EPERM|ENOPROTOOPT" },
	{ "host-port", "a server on the host's loopback", host_port, PLAIN, .dev = NOWHERE, .bare = NOWHERE, .path = "127.0.0.1" },
	{ "host-port-any", "the same by the address 0", host_port, PLAIN, .dev = NOWHERE, .bare = NOWHERE, .path = "0.0.0.0" },
	{ "way-out", "a way to the world", way, PLAIN, .lacks = "ENETUNREACH", .dev = NOWHERE, .bare = NOWHERE, .path = "192.0.2.1" },
	{ "way-metadata", "a way to the cloud's metadata", way, PLAIN, .lacks = "ENETUNREACH", .dev = NOWHERE, .bare = NOWHERE, .path = "169.254.169.254" },
	{ "way-private", "a way to a private network", way, PLAIN, .lacks = "ENETUNREACH", .dev = NOWHERE, .bare = NOWHERE, .path = "10.255.255.254" },
};
/* clang-format on */

const struct topic net_topic = { "network", checks, sizeof checks / sizeof checks[0] };
