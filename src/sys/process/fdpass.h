/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a unix socket, blocking. 0 or -errno. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Most descriptors in one message: a generation with all its mounts. */
enum { FDPASS_FDS = 64 };

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, int nfds);
/*
 * The same without blocking: also -EAGAIN, or -ETOOMANYREFS if this user has too many descriptors
 * in flight.
 */
int fdpass_try(int sock, const void *msg, size_t size, const int *fds, int nfds);
/* Make the kernel report the sender of every message on this socket. */
int fdpass_ask_sender(int sock);
/* Receive one byte and its sender's pid in our pid namespace. -EPIPE: the other end is closed. */
int fdpass_recv_sender(int sock, pid_t *ret_pid);
/* As fdpass_recv(), with the sender's pid. Needs fdpass_ask_sender() first. */
int fdpass_recv_from(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds,
		     pid_t *ret_pid);
/* Receive exactly `size` bytes and up to max_fds descriptors, which are CLOEXEC. */
int fdpass_recv(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds);
