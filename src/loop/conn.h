/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a frame protocol on a unix stream socket, with descriptors.
 *
 * SCM_RIGHTS carries the descriptors of a frame with the frame's first byte. The receiver queues
 * arriving descriptors and gives each frame as many as its header says. If they are missing, the
 * connection ends. Callbacks own the descriptors that they get.
 *
 * Sending never blocks: unsent bytes wait in `out`, at most LIMIT_CONN_OUT. A producer of data
 * checks conn_backlog() and stops above LIMIT_CONN_HIGH; `drained` tells it to continue.
 */
#pragma once

#include <sys/types.h>

#include "base/limits.h"
#include "loop/loop.h"
#include "wire/frame.h"

struct conn;

struct conn_ops {
	/* Owns the frame's nfds descriptors. May call conn_done(). */
	void (*frame)(struct conn *c, const struct frame *f, int *fds);
	/* The peer left or broke the protocol (err < 0). Must lead to conn_done(). */
	void (*closed)(struct conn *c, int err);
	/* The backlog is below LIMIT_CONN_HIGH again. Optional. */
	void (*drained)(struct conn *c);
};

enum { CONN_FDQ = 4 * LIMIT_FRAME_FDS };

struct conn_parcel {
	size_t at; /* offset in out of the frame that carries them */
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
	size_t taken; /* bytes of in that are already handled */
	size_t chunk; /* size of the next read; 0: the minimum */
	int fdq[CONN_FDQ];
	int fdq_len;
	struct conn_parcel *parcels, **parcels_end;
	bool held, above;
	struct loop_timer kick; /* delivers frames that arrived before a hold */
	bool waits;		/* everything in out may wait for the next frame */
	struct loop_timer patience;
	bool *gone; /* set by conn_done() while a callback runs */
	/*
	 * Set by the owner of a socket that no other process of ours shares: conn_done() then also
	 * discards the descriptors that the peer left in it (base/fds.h).
	 */
	bool hostile;
};

/* Owns fd, which must be a unix stream socket; makes it non-blocking. */
int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_ops *ops);
/* Allowed at any time, also in callbacks and on a zeroed conn. Drops unsent bytes. */
void conn_done(struct conn *c);

/*
 * Like conn_done(), but the caller gets the descriptor back. -EBUSY if bytes or descriptors wait in
 * either direction; -ENOTCONN after conn_done().
 */
int conn_release(struct conn *c);

/*
 * The caller writes the fields or data of one frame between begin and end. -ENOTCONN after
 * conn_done().
 */
int conn_begin(struct conn *c, uint8_t type, uint32_t chan, size_t *ret_at);
/* Send the frame. Owns the fds, also on failure. */
int conn_end(struct conn *c, size_t at, const int *fds, int nfds);
/* Drop a frame that was begun, because adding to it failed. */
void conn_cancel(struct conn *c, size_t at);
int conn_send(struct conn *c, uint8_t type, uint32_t chan, struct str body);

/* One field of a frame: text if it is not NULL, else a number. */
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
 * Like conn_say(), for a frame that is not urgent. It is sent with the next frame, or after 5 ms.
 * The peer then wakes once for several frames.
 */
int conn_mention(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields,
		 int n);
#define CONN_MENTION(c, type, chan, ...) \
	conn_mention((c), (type), (chan), (const struct conn_field[]){ __VA_ARGS__ }, \
		     (int)ARRAY_LEN(((const struct conn_field[]){ __VA_ARGS__ })))

/* Like conn_mention(), for a frame that was begun. */
int conn_end_later(struct conn *c, size_t at);
/* Send the frames that conn_mention() queued now. */
void conn_push(struct conn *c);

/*
 * Send one frame with the result of one read of fd, at most `most` bytes. Returns the number of
 * bytes, 0 at the end of the file, or -errno.
 */
ssize_t conn_send_read(struct conn *c, uint8_t type, uint32_t chan, int fd, size_t most);
size_t conn_backlog(const struct conn *c);
/*
 * Stop or resume reading. Nothing is lost: frames that arrived before, and the peer's leaving, are
 * reported after the hold ends.
 */
void conn_hold(struct conn *c, bool hold);
/* Write everything out, blocking up to timeout_ms. For a process that is about to exit. */
int conn_flush(struct conn *c, int timeout_ms);
/*
 * Shut down our sending side and deliver the peer's remaining frames until it closes too. Then call
 * `closed` and return 0. -ETIMEDOUT if the peer does not close in time.
 */
int conn_drain(struct conn *c, int timeout_ms);
