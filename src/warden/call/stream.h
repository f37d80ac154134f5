/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stdio and ports as frames, for a driver without HAS_FDS. The rest of the warden and its clients
 * see no difference: a call has its usual pipes, and a client gets a socket. Their other ends stay
 * here, and a channel (loop/channel.h) carries the bytes to and from init.
 */
#pragma once

#include "warden/call/call.h"

struct stream;

/* True if calls of this sandbox use streams. */
bool stream_is_needed(const struct warden *w);
/* Take the ends of c's pipes that would otherwise go to init. Sets c->stream. 0 or -errno. */
int stream_open(struct call *c, int fds[FD_ROLES]);
/* The process has ended, and all its output has arrived. */
void stream_finish(struct call *c);
/* True if output waits to be read from the call's pipes. */
bool stream_is_pending(const struct call *c);
void stream_resize(struct call *c, unsigned rows, unsigned cols);
void stream_free(struct stream *s);

/* Open a port inside: returns the client's end of the connection, or -errno. chan: of the DIAL. */
int stream_dial(struct warden *w, uint32_t chan);

/* Handle a frame from init. 1: not for a stream; 0: handled; -EPROTO: init broke the protocol. */
int stream_frame(struct warden *w, const struct frame *f);
/* The connection to init has room again. */
void streams_resume(struct warden *w);
/* Free all streams at the end of the sandbox. */
void streams_free(struct warden *w);
