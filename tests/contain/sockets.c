/* SPDX-License-Identifier: Apache-2.0 */
/* Families and protocols of sockets: an allow-list, since every year another one breaks. */
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "probe.h"

enum {
	MPTCP = 262,
	TIPC = 30,
	QIPCRTR = 42,
	SMC = 43,
	XDP = 44,
	MCTP = 45,
	PHONET = 35,
	IEEE802154 = 36,
	CAIF = 37,
	NFC = 39,
	KCM = 41
};

static int pair(const struct check *c)
{
	int fds[2];

	return result(socketpair((int)c->a[0], SOCK_STREAM, 0, fds));
}

#define SOCKET(what, family, type, protocol, where) \
	{ \
		"socket-" what, "a socket: " what, run_call, where, .lacks = NOT_BUILT "|EINVAL", \
								    .nr = SYS_socket, \
								    .a = { family, \
									   type, \
									   protocol } \
	}
#define NETLINK(what, protocol) \
	{ \
		"netlink-" what, "talking to the kernel: " what, run_call, PLAIN, \
			.lacks = NOT_BUILT, .nr = SYS_socket, \
			.a = { AF_NETLINK, \
			       SOCK_RAW, \
			       protocol } \
	}

/* clang-format off */
static const struct check checks[] = {
	{ "socket-vsock", "the hypervisor's agents", run_call, PLAIN, .lacks = NOT_BUILT, .nr = SYS_socket, .a = { AF_VSOCK, SOCK_STREAM } },
	{ "socket-vsock-datagram", "the hypervisor's agents", run_call, PLAIN, .lacks = NOT_BUILT "|ENODEV", .nr = SYS_socket, .a = { AF_VSOCK, SOCK_DGRAM } },
	SOCKET("mptcp", AF_INET, SOCK_STREAM, MPTCP, PLAIN), SOCKET("mptcp-6", AF_INET6, SOCK_STREAM, MPTCP, PLAIN),
	SOCKET("sctp", AF_INET, SOCK_STREAM, IPPROTO_SCTP, PLAIN), SOCKET("sctp-6", AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP, PLAIN),
	SOCKET("udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, PLAIN), SOCKET("udplite-6", AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE, PLAIN),
	SOCKET("dccp", AF_INET, 6, 33, PLAIN), SOCKET("l2tp", AF_INET, SOCK_DGRAM, 115, PLAIN),
	SOCKET("raw-tcp", AF_INET, SOCK_RAW, IPPROTO_TCP, NS), SOCKET("raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP, NS),
	SOCKET("raw-any", AF_INET, SOCK_RAW, IPPROTO_RAW, NS), SOCKET("raw-udp-6", AF_INET6, SOCK_RAW, IPPROTO_UDP, NS),
	SOCKET("raw-icmp-6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, NS), SOCKET("raw-any-6", AF_INET6, SOCK_RAW, IPPROTO_RAW, NS),
	SOCKET("old-packet", AF_INET, SOCK_PACKET, 768, NS),
	SOCKET("packet-raw", AF_PACKET, SOCK_RAW, 768, NS), SOCKET("packet-datagram", AF_PACKET, SOCK_DGRAM, 768, NS),
	SOCKET("packet-none", AF_PACKET, SOCK_RAW, 0, NS), SOCKET("packet-high-bits", AF_PACKET | 1L << 32, SOCK_RAW, 0, NS),
	SOCKET("xdp", XDP, SOCK_RAW, 0, NS), SOCKET("key", AF_KEY, SOCK_RAW, 2, NS), SOCKET("alg", AF_ALG, SOCK_SEQPACKET, 0, PLAIN),
	SOCKET("rxrpc", AF_RXRPC, SOCK_DGRAM, AF_INET, PLAIN), SOCKET("tipc", TIPC, SOCK_RDM, 0, PLAIN),
	SOCKET("can", AF_CAN, SOCK_RAW, 1, PLAIN), SOCKET("bluetooth", AF_BLUETOOTH, SOCK_RAW, 1, PLAIN),
	SOCKET("smc", SMC, SOCK_STREAM, 0, PLAIN), SOCKET("kcm", KCM, SOCK_DGRAM, 0, PLAIN), SOCKET("rds", AF_RDS, SOCK_SEQPACKET, 0, PLAIN),
	SOCKET("pppox", AF_PPPOX, SOCK_DGRAM, 0, PLAIN), SOCKET("llc", AF_LLC, SOCK_DGRAM, 0, NS), SOCKET("nfc", NFC, SOCK_SEQPACKET, 1, PLAIN),
	SOCKET("phonet", PHONET, SOCK_DGRAM, 0, NS), SOCKET("802154", IEEE802154, SOCK_DGRAM, 0, NS), SOCKET("caif", CAIF, SOCK_STREAM, 0, NS),
	SOCKET("qipcrtr", QIPCRTR, SOCK_DGRAM, 0, PLAIN), SOCKET("mctp", MCTP, SOCK_DGRAM, 0, NS), SOCKET("ax25", AF_AX25, SOCK_DGRAM, 0, PLAIN),
	SOCKET("atm", AF_ATMPVC, SOCK_DGRAM, 0, PLAIN), SOCKET("appletalk", AF_APPLETALK, SOCK_DGRAM, 0, PLAIN),
	NETLINK("usersock", NETLINK_USERSOCK), NETLINK("nflog", NETLINK_NFLOG),
	NETLINK("xfrm", NETLINK_XFRM), NETLINK("selinux", NETLINK_SELINUX), NETLINK("iscsi", NETLINK_ISCSI),
	NETLINK("fib-lookup", NETLINK_FIB_LOOKUP), NETLINK("connector", NETLINK_CONNECTOR), NETLINK("netfilter", NETLINK_NETFILTER),
	NETLINK("uevent", NETLINK_KOBJECT_UEVENT), NETLINK("generic", NETLINK_GENERIC), NETLINK("scsi", NETLINK_SCSITRANSPORT),
	NETLINK("rdma", NETLINK_RDMA), NETLINK("crypto", NETLINK_CRYPTO),
	{ "netlink-sock-diag", "all sockets of the network namespace", run_call, PLAIN, .lacks = NOT_BUILT, .dev = "EPROTONOSUPPORT", .nr = SYS_socket, .a = { AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG } },
	{ "netlink-audit", "the audit log", run_call, PLAIN, .lacks = NOT_BUILT, .dev = "EPROTONOSUPPORT", .nr = SYS_socket, .a = { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT } },
	{ "netlink-high-bits", "netfilter by a protocol with high bits", run_call, PLAIN, .lacks = NOT_BUILT, .nr = SYS_socket, .a = { AF_NETLINK, SOCK_RAW, 1L << 32 | NETLINK_NETFILTER } },
	{ "pair-inet", "a pair of inet sockets", pair, PLAIN, .allowed = "EOPNOTSUPP", .a = { AF_INET } },
	{ "pair-netlink", "a pair of netlink sockets", pair, PLAIN, .allowed = "EOPNOTSUPP|EPROTONOSUPPORT|ESOCKTNOSUPPORT", .a = { AF_NETLINK } },
};
/* clang-format on */

const struct topic sockets_topic = { "sockets", checks, sizeof checks / sizeof checks[0] };
