/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox: a loopback device on which every address is local, rules that redirect
 * TCP and DNS to the gateway, and the gateway's sockets, made inside and passed out. Everything
 * belongs to the outer user namespace, so root inside cannot change it.
 */
#pragma once

#include "driver/ns/ns.h"

/*
 * In the launch child, before it enters the inner user namespace. `to`: socket to the warden for
 * the descriptors; knobs_fd: the writable /proc/sys. 0, or -errno with *what.
 */
int net_child(int to, int knobs_fd, const char **what);
/*
 * At the same place, in the sandbox's network namespace: every user inside may bind low ports, as a
 * developer does on a machine of their own, and send ICMP echoes. Both end at the loopback device.
 */
int net_ease(const struct cell_spec *s, int knobs_fd);
/* The warden's half. */
int net_receive(int from, struct ns_cell *c, struct err *e);
void net_done(struct ns_cell *c);
