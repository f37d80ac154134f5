/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A socket connected to a port of the sandbox's loopback, IPv4 first; or -errno. It may still be
 * connecting if the server is slow to accept.
 */
int dial_inside(uint16_t port);
