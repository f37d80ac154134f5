/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that cay serve listens on. */
#pragma once

#include <sys/un.h>

#include "api/handover.h"
#include "base/err.h"

struct serve_listen {
	const char *state_dir;
	const char *want_listen, *want_socket; /* as given; NULL: none, the default */
	struct handover *left;		       /* listeners that are there already; NULL: none */
	/* Set by the functions below. */
	char socket[sizeof((struct sockaddr_un *)0)->sun_path];
	char address[80]; /* ADDR:PORT as bound; empty: none */
	unsigned port;
	char unix_name[HANDOVER_NAME], tcp_name[HANDOVER_NAME]; /* as in struct handover */
};

int serve_listen_unix(struct serve_listen *s, int *ret_fd, struct err *e);
int serve_listen_tcp(struct serve_listen *s, int *ret_fd, struct err *e);
