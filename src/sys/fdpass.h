/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a unix socket, blocking. 0 or -errno. */
#pragma once

#include <stddef.h>

/* Most descriptors of one message: those of a generation of a sandbox with all its mounts. */
enum { FDPASS_FDS = 64 };

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, int nfds);
/* Exactly `size` bytes; fills *ret_nfds of at most max_fds descriptors, which are CLOEXEC. */
int fdpass_recv(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds);
