/* SPDX-License-Identifier: Apache-2.0 */
/* Where output goes: writes what the descriptor takes now, keeps the rest for later. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"

struct sink {
	struct loop *loop;
	struct loop_io io;
	int fd; /* FD_NONE: everything is dropped */
	bool own, socket, broken;
	int error; /* errno of what broke it */
	struct buf rest;
	void (*emptied)(struct sink *s);
};

/* fd is borrowed. */
int sink_init(struct sink *s, struct loop *l, int fd, void (*emptied)(struct sink *));
void sink_done(struct sink *s);
/* What cannot be written now waits in `rest`. 0, or -errno of a broken descriptor. */
int sink_write(struct sink *s, struct str data);
/* Write all that is left, blocking. */
int sink_flush(struct sink *s);
