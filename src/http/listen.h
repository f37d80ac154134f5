/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accept connections. If no descriptor is free, a spare one accepts the client, answers 503 and
 * closes; accepting then rests 100 ms. Above the server's limits nothing is accepted, so clients
 * wait in the kernel's queue.
 */
#pragma once

#include "http/server.h"

struct http_listener {
	struct http_server *server;
	struct loop_io io;
	int fd; /* owned */
	const struct http_filter_maker *maker;
	struct http_listener *next;
};

/* Takes fd, which listens already; makes it non-blocking. maker: TLS, or NULL. 0 or -errno. */
int http_listen_add(struct http_server *s, struct http_listener *l, int fd,
		    const struct http_filter_maker *maker);
void http_listen_remove(struct http_listener *l);
