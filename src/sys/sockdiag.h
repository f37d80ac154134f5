/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose socket it is: the kernel's record of the other end of a connection, or of the sender
 * of a datagram, in the network namespace that the netlink socket was made in. The control
 * group is that of the process that made the socket, whoever uses it now.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sockdiag_end {
	uint8_t family; /* AF_INET, AF_INET6 */
	uint16_t port;	/* host byte order */
	uint8_t addr[16];
};

struct sockdiag_owner {
	uint64_t cgroup; /* its id: the inode of its directory; 0: not known */
	uint32_t uid;
	uint32_t inode; /* of the socket; 0: closed meanwhile */
	bool certain;	/* found by both ends, or all that it could be have one owner */
};

/*
 * The socket at `local` that is connected to `remote`, or for UDP would take what comes from
 * there. protocol: IPPROTO_TCP or IPPROTO_UDP. 0, -ENOENT where it is gone, or -errno.
 */
int sockdiag_find(int fd, int protocol, const struct sockdiag_end *local,
		  const struct sockdiag_end *remote, struct sockdiag_owner *ret);
/*
 * Where that is gone: the socket that talks to that remote end, or from that port. For when the
 * translation of addresses has changed the port, or the program asked another resolver than us.
 * Looks at all sockets of the namespace.
 */
int sockdiag_find_like(int fd, int protocol, const struct sockdiag_end *local,
		       const struct sockdiag_end *remote, struct sockdiag_owner *ret);
