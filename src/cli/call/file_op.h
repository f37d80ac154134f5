/* SPDX-License-Identifier: Apache-2.0 */
/* File operations inside a sandbox, as calls. */
#pragma once

#include "link/client.h"

struct client_io {
	int in_fd;		     /* the call's stdin, until its end; FD_NONE: empty */
	int out_fd;		     /* the call's stdout; FD_NONE: dropped */
	bool (*in_whole)(void *ctx); /* as in struct session */
	void *ctx;
};

/* One file operation inside, to its end. */
int client_file_op(const struct state *s, const char *id, enum call_op op, const char *path,
		   uint64_t mode, const char *user, struct client_io io, struct buf *ret_stderr,
		   int *ret_exit, struct err *e);
