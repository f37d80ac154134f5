/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A socket connected to a port of the sandbox's own loopback, IPv4 first. It may still be
 * connecting where the server is slow to accept. Or -errno.
 */
int dial_inside(uint16_t port);
