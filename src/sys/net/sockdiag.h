/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the owner of a socket: the kernel's record of the other end of a connection, or of the
 * sender of a datagram, in the netlink socket's network namespace. The control group is that of the
 * process that made the socket, even if another process uses it now.
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
	uint64_t cgroup; /* id of the group: its directory's inode; 0: unknown */
	uint32_t uid;
	uint32_t inode; /* of the socket; 0: already closed */
	bool certain;	/* both ends matched, or all candidates have one owner */
};

/*
 * The socket at `local` connected to `remote`; for UDP, the one that receives from `remote`.
 * protocol: IPPROTO_TCP or IPPROTO_UDP. 0, -ENOENT if there is none, or -errno.
 */
int sockdiag_find(int fd, int protocol, const struct sockdiag_end *local,
		  const struct sockdiag_end *remote, struct sockdiag_owner *ret);
/*
 * If sockdiag_find() finds nothing: the socket connected to that remote end, or using that local
 * port. Needed if address translation changed the port, or the program used another resolver.
 * Searches all sockets of the namespace.
 */
int sockdiag_find_like(int fd, int protocol, const struct sockdiag_end *local,
		       const struct sockdiag_end *remote, struct sockdiag_owner *ret);
