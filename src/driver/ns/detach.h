/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detach the last generation from the keel without waiting for the kernel. umount2(2) detaches a
 * mount at once, but returns only after a grace period of 0.1 to 10 ms. So a child, forked earlier,
 * calls it. The helper continues as soon as its own mountinfo reports the change (poll(2) with
 * POLLPRI). On a kernel that reports it late, the child's answer comes first.
 */
#pragma once

#include "driver/ns/launch.h"

/*
 * Fork the child. It ends after its work, or when the descriptor is closed. Returns the fd or
 * -errno.
 */
int detach_prepare(const struct tree *t, const char *slot);
/*
 * fd: from detach_prepare; self: /proc/self. 0 when nothing is mounted on slot any more, or -errno.
 */
int detach_run(const struct tree *t, const char *slot, int fd, int self);
