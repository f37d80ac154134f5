/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a frame protocol on a unix stream socket, with descriptors.
 *
 * Descriptors travel by SCM_RIGHTS with the first byte of their frame. The receiver queues
 * what arrives and hands each frame as many as its header says; a frame whose descriptors
 * did not come ends the connection. Callbacks own the descriptors they are given.
 *
 * Sending never blocks: bytes wait in `out` up to LIMIT_CONN_OUT. Whoever produces data
 * looks at conn_backlog() and stops above LIMIT_CONN_HIGH; `drained` tells it to go on.
 */
#pragma once

#include <sys/types.h>

#include "base/limits.h"
#include "loop/loop.h"
#include "wire/frame.h"

struct conn;

struct conn_ops {
	/* Takes the nfds descriptors of the frame. May call conn_done(). */
	void (*frame)(struct conn *c, const struct frame *f, int *fds);
	/* The peer is gone or broke the protocol (err < 0). Must lead to conn_done(). */
	void (*closed)(struct conn *c, int err);
	/* The backlog has fallen below LIMIT_CONN_HIGH again. Optional. */
	void (*drained)(struct conn *c);
};

enum { CONN_FDQ = 4 * LIMIT_FRAME_FDS };

struct conn_parcel {
	size_t at; /* offset in out of the frame that they go with */
	int n;
	int fds[LIMIT_FRAME_FDS];
	struct conn_parcel *next;
};

struct conn {
	struct loop *loop;
	const struct conn_ops *ops;
	struct loop_io io;
	int fd;
	struct buf in, out;
	size_t taken; /* bytes of in that are handled already */
	size_t chunk; /* how much is read at once; 0: the least */
	int fdq[CONN_FDQ];
	int fdq_len;
	struct conn_parcel *parcels, **parcels_end;
	bool held, above;
	struct loop_timer kick; /* hands out what a hold left behind */
	bool waits;		/* all that is in out may wait for company */
	struct loop_timer patience;
	bool *gone; /* set by conn_done() while a callback runs */
};

/* Takes fd, which must be a unix stream socket; makes it non-blocking. */
int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_ops *ops);
/* Legal at any time, also from callbacks, and on a zeroed conn. Unsent bytes are lost. */
void conn_done(struct conn *c);

/* Fields or data of one frame, written by the caller between begin and end. -ENOTCONN once done. */
int conn_begin(struct conn *c, uint8_t type, uint32_t chan, size_t *ret_at);
/* Send it; takes the fds whatever the result. */
int conn_end(struct conn *c, size_t at, const int *fds, int nfds);
/* Forget a frame that was begun: adding to it failed. */
void conn_cancel(struct conn *c, size_t at);
int conn_send(struct conn *c, uint8_t type, uint32_t chan, struct str body);

/* One field of a frame that is sent whole: text where it is not NULL, else a number. */
struct conn_field {
	uint16_t tag;
	uint64_t number;
	const char *text;
};
int conn_say(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields, int n);
#define CONN_SAY(c, type, chan, ...) \
	conn_say((c), (type), (chan), (const struct conn_field[]){ __VA_ARGS__ }, \
		 (int)ARRAY_LEN(((const struct conn_field[]){ __VA_ARGS__ })))

/*
 * The same for news that nobody is waiting for: it goes with the next frame that is sent, or
 * after 5 ms. A peer that is told twice within that time need not be woken twice.
 */
int conn_mention(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields,
		 int n);
#define CONN_MENTION(c, type, chan, ...) \
	conn_mention((c), (type), (chan), (const struct conn_field[]){ __VA_ARGS__ }, \
		     (int)ARRAY_LEN(((const struct conn_field[]){ __VA_ARGS__ })))

/* The same for a frame that was begun. */
int conn_end_later(struct conn *c, size_t at);
/* Send now what waits for company. */
void conn_push(struct conn *c);

/* A frame of what one read of fd gives, at most `most` bytes: their number, 0 at the end, -errno.
 */
ssize_t conn_send_read(struct conn *c, uint8_t type, uint32_t chan, int fd, size_t most);
size_t conn_backlog(const struct conn *c);
/*
 * Stop or go on reading. Nothing is lost by it: what came before, and the news that the peer
 * is gone, are told after the hold ends.
 */
void conn_hold(struct conn *c, bool hold);
/* The same as its end, and what it kept is handed out at once. False when the connection is gone.
 */
bool conn_go_on(struct conn *c);
/* Whether something has come in that the hold keeps back. */
bool conn_is_asked(const struct conn *c);
/* Write out all that waits, blocking up to timeout_ms. For the last words of a process. */
int conn_flush(struct conn *c, int timeout_ms);
/*
 * Say that nothing more comes, and hand out what the peer still says until it closes too, when
 * `closed` is called: 0. -ETIMEDOUT where it does not in that time.
 */
int conn_drain(struct conn *c, int timeout_ms);
