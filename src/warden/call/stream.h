/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdio and ports as frames, for a driver without HAS_FDS. The rest of the warden and its clients
 * see no difference: a call has the pipes that it always has, and a client gets a socket. Their
 * other ends stay here, and a channel (loop/channel.h) carries the bytes to init and back.
 */
#pragma once

#include "warden/call/call.h"

struct stream;

/* Whether calls of this sandbox are carried so. */
bool stream_is_needed(const struct warden *w);
/* Take the ends of c's pipes that would go to init. Sets c->stream. 0 or -errno. */
int stream_open(struct call *c, int fds[FD_ROLES]);
/* Its process has ended, and its output has come. */
void stream_finish(struct call *c);
/* Some of its output waits to be read from its pipes. */
bool stream_is_pending(const struct call *c);
void stream_resize(struct call *c, unsigned rows, unsigned cols);
void stream_free(struct stream *s);

/* A port inside: the client's end of the connection, or -errno. chan: of the DIAL. */
int stream_dial(struct warden *w, uint32_t chan);

/* A frame of init's. 1: none of a stream's; 0; -EPROTO: init broke the protocol. */
int stream_frame(struct warden *w, const struct frame *f);
/* The connection to init has room again. */
void streams_resume(struct warden *w);
/* The sandbox ends. */
void streams_free(struct warden *w);
