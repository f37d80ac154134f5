/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that came with a message (SCM_RIGHTS). */
#pragma once

#include <sys/socket.h>

/*
 * Put at most `room` descriptors into fds; the caller owns them. Close the rest. Return how many
 * descriptors the message carried.
 */
int fds_take(const struct msghdr *m, int *fds, int room);
