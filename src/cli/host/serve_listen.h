/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that cay serve listens on. */
#pragma once

#include <sys/un.h>

#include "base/err.h"

struct serve_listen {
	const char *state_dir;
	const char *want_listen, *want_socket; /* as given; NULL: none, the default */
	/* Set by the functions below. */
	char socket[sizeof((struct sockaddr_un *)0)->sun_path];
	char address[80]; /* ADDR:PORT as bound; empty: none */
	unsigned port;
};

int serve_listen_unix(struct serve_listen *s, int *ret_fd, struct err *e);
int serve_listen_tcp(struct serve_listen *s, int *ret_fd, struct err *e);
