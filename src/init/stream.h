/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdio and ports as frames, if no descriptors pass between the warden and init (cay-init
 * --stream). Init itself makes the pipes or the terminal of a call, and a channel (loop/channel.h)
 * carries their bytes.
 *
 * A call ends when its process has ended and its output has been sent. Later output of processes
 * that it left behind is read and dropped.
 */
#pragma once

#include "init/request.h"
#include "loop/channel.h"

struct stream;

/* moved: callback when output was sent or has ended; or NULL. ctx: its argument. */
struct stream *stream_new(struct loop *l, struct conn *warden, uint32_t chan,
			  void (*moved)(void *ctx), void *ctx);
/* Open the stdio of a call: the child's ends go into r->fds. 0 or -errno. */
int stream_open(struct stream *s, struct request *r);
/* Carry a connection to a port; takes fd. Frees itself when both directions have ended. */
int stream_dial(struct stream *s, int fd);
/* True if all output has been sent. */
bool stream_is_drained(struct stream *s);
/* The call has ended: drop further output, and free the stream after the last writer is gone. */
void stream_leave(struct stream *s);
void stream_free(struct stream *s);

/* Handle a frame from the warden. 1: not for a stream; 0: handled; -EPROTO: protocol error. */
int stream_frame(const struct frame *f);
/* The connection to the warden has room again. */
void streams_resume(void);
/* In a new child: close the descriptors of all streams. */
void streams_close(void);
