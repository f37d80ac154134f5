/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdio and ports as frames, where no descriptors pass between the warden and init (cay-init
 * --stream). Init makes the pipes or the terminal of a call itself, and a channel (loop/channel.h)
 * carries their bytes.
 *
 * A call ends when its process has ended and its output has been sent. What processes that it left
 * behind write later is read and dropped.
 */
#pragma once

#include "init/request.h"
#include "loop/channel.h"

struct stream;

/* moved: its output may have come to an end; or NULL. ctx: whose it is. */
struct stream *stream_new(struct loop *l, struct conn *warden, uint32_t chan,
			  void (*moved)(void *ctx), void *ctx);
/* The stdio of a call: the child's ends go into r->fds. 0 or -errno. */
int stream_open(struct stream *s, struct request *r);
/* A connection to a port; takes fd. It frees itself when both directions have ended. */
int stream_dial(struct stream *s, int fd);
/* All that was written has been sent. */
bool stream_is_drained(struct stream *s);
/* Its call has ended: drop what comes, and free it when nobody can write any more. */
void stream_leave(struct stream *s);
void stream_free(struct stream *s);

/* A frame of the warden's: 1: none of a stream's; 0; -EPROTO: it broke the protocol. */
int stream_frame(const struct frame *f);
/* The connection to the warden has room again. */
void streams_resume(void);
/* In a new child: the descriptors of all streams are not its own. */
void streams_close(void);
