/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Do packets to this address stay on this host? fd: a NETLINK_ROUTE socket. 0, 1 or -errno. */
int route_is_local(int fd, const uint8_t *addr, size_t size);
