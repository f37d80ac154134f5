/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One channel of a frame connection, with the descriptors that its bytes come from and go to. Used
 * for the stdio of a call, or a connection to a port, if no descriptors pass between the two ends.
 *
 *   source: read the descriptor, send data frames, within the credit from the peer
 *   sink:   write data frames to the descriptor, and give credit for the written bytes
 *
 * Both ends start with a window of LIMIT_CHANNEL bytes in each direction. A sink keeps at most that
 * much; a peer that sends more breaks the protocol. A source also stops while the connection has a
 * backlog: the owner calls channel_resume() afterwards.
 */
#pragma once

#include "loop/conn.h"

enum { CHANNEL_ENDS = 2 };

struct channel;

struct channel_source {
	struct channel *channel;
	int fd; /* owned; FD_NONE: none, or ended */
	struct loop_io io;
	bool waits;   /* waits for credit or for the connection */
	uint8_t type; /* frame type of its data */
	uint8_t end;  /* frame type that reports its end; 0: none */
};

struct channel_sink {
	struct channel *channel;
	int fd; /* owned; FD_NONE: bytes are dropped */
	struct loop_io io;
	struct buf pending;
	uint8_t type, end;
	bool ending; /* close it after everything is written */
};

struct channel {
	struct loop *loop;
	struct conn *conn;
	uint32_t id;
	uint8_t credit_type; /* frame type that gives credit, with TAG_BYTES */
	uint64_t credit;     /* bytes that may be sent */
	uint64_t owed;	     /* bytes received, without credit given back yet */
	bool drops;	     /* sources are read, but nothing is sent */
	struct channel_source source[CHANNEL_ENDS];
	struct channel_sink sink[CHANNEL_ENDS];
	/*
	 * Called when a source has ended or has no more data for now, or a sink has written
	 * everything. May free c.
	 */
	void (*moved)(struct channel *c);
};

void channel_init(struct channel *c, struct loop *l, struct conn *conn, uint32_t id,
		  uint8_t credit_type, void (*moved)(struct channel *));
void channel_done(struct channel *c);
/* Takes fd and makes it non-blocking. end: the frame type that reports its end. 0 or -errno. */
int channel_source(struct channel *c, int i, int fd, uint8_t type, uint8_t end);
int channel_sink(struct channel *c, int i, int fd, uint8_t type, uint8_t end);
/*
 * Handles a frame of this channel. 1: not a channel frame; -EPROTO: more than the window, or a
 * credit without a number. Never calls moved().
 */
int channel_frame(struct channel *c, const struct frame *f);
/* The connection has room again. */
void channel_resume(struct channel *c);
/* Read what the sources have now. True if they have no more data, or have ended. */
bool channel_is_drained(struct channel *c);
/* True if a sink has unwritten bytes. */
bool channel_is_pending(const struct channel *c);
/* True if all its descriptors are closed. */
bool channel_is_over(const struct channel *c);
/* No more data for the sinks: each closes once it has written everything. */
void channel_finish(struct channel *c);
/* Drop everything that the sources deliver from now on. */
void channel_drop(struct channel *c);
