/* SPDX-License-Identifier: Apache-2.0 */
/* An output: writes what the descriptor accepts now and keeps the rest for later. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

struct sink {
	struct loop *loop;
	struct loop_io io;
	int fd; /* FD_NONE: everything is discarded */
	bool own, socket, broken;
	int error; /* errno of the failed write */
	struct buf rest;
	void (*emptied)(struct sink *s);
};

/* fd is borrowed. */
int sink_init(struct sink *s, struct loop *l, int fd, void (*emptied)(struct sink *));
void sink_done(struct sink *s);
/* Bytes that cannot be written now go to `rest`. Returns 0, or -errno of a broken descriptor. */
int sink_write(struct sink *s, struct str data);
/* Write the rest, blocking. */
int sink_flush(struct sink *s);
