/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One channel of a frame connection, and the descriptors that its bytes come from and go to: the
 * stdio of a call, or a connection to a port, where no descriptors pass between both ends.
 *
 *   source: read the descriptor, send data frames, within the credit that the peer gave
 *   sink:   write data frames to the descriptor, and give credit for what it took
 *
 * Both ends begin with a window of LIMIT_CHANNEL bytes in each direction. A sink keeps at most that
 * much; a peer that sends more breaks the protocol. A source also stops while the connection has
 * a backlog: the owner calls channel_resume() when that is gone.
 */
#pragma once

#include "loop/conn.h"

enum { CHANNEL_ENDS = 2 };

struct channel;

struct channel_source {
	struct channel *channel;
	int fd; /* owned; FD_NONE: none, or it has ended */
	struct loop_io io;
	bool waits;   /* for credit or for the connection */
	uint8_t type; /* of the frames */
	uint8_t end;  /* frame that says that it has ended; 0: none */
};

struct channel_sink {
	struct channel *channel;
	int fd; /* owned; FD_NONE: what comes is dropped */
	struct loop_io io;
	struct buf pending;
	uint8_t type, end;
	bool ending; /* close it when all is written */
};

struct channel {
	struct loop *loop;
	struct conn *conn;
	uint32_t id;
	uint8_t credit_type; /* frame that gives credit, with TAG_BYTES */
	uint64_t credit;     /* bytes that may be sent */
	uint64_t owed;	     /* bytes that came, and for which no credit was given yet */
	bool drops;	     /* sources are read, and nothing is sent */
	struct channel_source source[CHANNEL_ENDS];
	struct channel_sink sink[CHANNEL_ENDS];
	/* A source has ended or has nothing more for now, or a sink has written all. May free c. */
	void (*moved)(struct channel *c);
};

void channel_init(struct channel *c, struct loop *l, struct conn *conn, uint32_t id,
		  uint8_t credit_type, void (*moved)(struct channel *));
void channel_done(struct channel *c);
/* Take fd and make it non-blocking. end: the frame that tells of its end. 0 or -errno. */
int channel_source(struct channel *c, int i, int fd, uint8_t type, uint8_t end);
int channel_sink(struct channel *c, int i, int fd, uint8_t type, uint8_t end);
/*
 * A frame of this channel. 1: it is none of a channel's; -EPROTO: more than the window, or no
 * number in a credit. Never calls moved().
 */
int channel_frame(struct channel *c, const struct frame *f);
/* The connection has room again. */
void channel_resume(struct channel *c);
/* Read what the sources have now: true when they have nothing, or have ended. */
bool channel_is_drained(struct channel *c);
/* Whether a sink has bytes that its descriptor has not taken. */
bool channel_is_pending(const struct channel *c);
/* Whether all its descriptors are closed. */
bool channel_is_over(const struct channel *c);
/* No more comes for the sinks: each is closed once it has written all. */
void channel_finish(struct channel *c);
/* From now on what the sources have is dropped. */
void channel_drop(struct channel *c);
