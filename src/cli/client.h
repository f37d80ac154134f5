/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to a sandbox's warden. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/state.h"
#include "wire/proto.h"

struct client_io {
	int in_fd;  /* stdin of the call, read until its end; FD_NONE: empty */
	int out_fd; /* gets stdout; FD_NONE: dropped */
};

/*
 * Run one file operation and wait for its end. 0: it ran, *ret_exit is its exit code and
 * what it wrote to stderr is appended to *ret_stderr. The descriptors stay the caller's.
 */
int client_file_op(const struct state *s, const char *id, enum call_op op, const char *path,
		   uint64_t mode, const char *user, struct client_io io, struct buf *ret_stderr,
		   int *ret_exit, struct err *e);
