/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox: a loopback device on which every address is local, rules that
 * lead TCP and DNS to the gateway, and the gateway's sockets, made inside and passed out.
 * All of it belongs to the outer user namespace: root inside can change nothing.
 */
#pragma once

#include "driver/driver.h"

/*
 * In the launch child, before it enters the inner user namespace. `to`: socket to the warden, on
 * which the descriptors go; knobs_fd: /proc/sys, as it can be written. 0, or -errno with *what.
 */
int net_child(int to, int knobs_fd, const char **what);
/* The warden's half. */
int net_receive(int from, struct cell *c, struct err *e);
void net_done(struct cell *c);
