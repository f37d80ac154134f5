/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors received with a message (SCM_RIGHTS), possibly from a hostile process.
 *
 * The last close(2) of a TCP socket with SO_LINGER blocks until its peer has taken all data, for as
 * long as the sender of the descriptor chose. recvmsg(2) closes descriptors that do not fit its
 * buffer. So a process that must not block receives every descriptor of a message (union
 * fds_control), and closes the unwanted ones with fds_discard().
 */
#pragma once

#include <sys/socket.h>

enum { FDS_MOST = 253 }; /* SCM_MAX_FD: no message carries more */

/* Room for all descriptors of one message. */
union fds_control {
	char bytes[CMSG_SPACE(sizeof(int) * FDS_MOST) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

/*
 * Put at most `room` descriptors into fds; the caller owns them. Discard the rest. Return how many
 * descriptors the message carried.
 */
int fds_take(const struct msghdr *m, int *fds, int room);
/* Close descriptors of any kind without blocking. They become FD_NONE. */
void fds_discard(int *fds, int n);
/* The same for one descriptor. It is cheap unless the descriptor is an Internet socket. */
void fds_close_sent(int *fd);
/* Close our end of a unix socket, with the descriptors that a hostile peer left in it. */
void fds_close_socket(int *sock);
