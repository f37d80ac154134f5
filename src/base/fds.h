/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that came with a message (SCM_RIGHTS). */
#pragma once

#include <sys/socket.h>

/*
 * Into fds, at most `room` of them; the caller owns them, and those beyond are closed. Returns
 * how many came in all.
 */
int fds_take(const struct msghdr *m, int *fds, int room);
