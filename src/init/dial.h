/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to ports of the sandbox's loopback device. */
#pragma once

#include <stdint.h>

#include "loop/loop.h"

/*
 * Connect to the port at 127.0.0.1, then at [::1], because some servers listen only there. Never
 * blocks. done runs once, maybe before this returns: with a connected socket, which it owns, or
 * with -errno of the first address.
 */
void dial_inside(struct loop *l, uint16_t port, uint32_t chan, void (*done)(uint32_t chan, int fd));
