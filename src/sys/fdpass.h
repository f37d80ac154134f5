/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a unix socket, blocking. 0 or -errno. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Most descriptors of one message: those of a generation of a sandbox with all its mounts. */
enum { FDPASS_FDS = 64 };

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, int nfds);
/* Ask the kernel to say with everything that comes on this socket who sent it. */
int fdpass_ask_sender(int sock);
/* One byte, and the pid of its sender as seen from here; -EPIPE: the other side is closed. */
int fdpass_recv_sender(int sock, pid_t *ret_pid);
/* As fdpass_recv(), with the sender's pid as seen from here, on a socket that asks for it. */
int fdpass_recv_from(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds,
		     pid_t *ret_pid);
/* Exactly `size` bytes; fills *ret_nfds of at most max_fds descriptors, which are CLOEXEC. */
int fdpass_recv(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds);
