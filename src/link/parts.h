/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a link, for the files of this directory. */
#pragma once

#include "link/link.h"
#include "loop/conn.h"

enum { LINK_BUCKETS = 64 };

struct link {
	struct loop *loop;
	struct conn conn; /* conn.loop is NULL once it is closed */
	const struct link_ops *ops;
	void *owner;
	char id[ID_SIZE];
	unsigned version;
	struct link_channel *channels[LINK_BUCKETS]; /* by number */
	int nchannels;
	uint32_t last_channel;
	int holds; /* calls that cannot take more from a warden of version 2 */
	bool keeps_alive;
	uint64_t heard_ns; /* when the last frame came */
	struct loop_timer ping;
	bool *gone; /* set when it is freed while a callback runs */
};

struct link_channel_ops {
	/* Takes the descriptors. May end the channel, and free the link. */
	void (*frame)(struct link_channel *c, const struct frame *f, int *fds);
	/* The channel is closed already. */
	void (*failed)(struct link_channel *c, const struct err *why);
	/* Its time is over: tell the warden. May close it. Optional. */
	void (*expired)(struct link_channel *c);
	/* The link can send again. Optional. */
	void (*drained)(struct link_channel *c);
};

/* Give it a number; 0 or -errno. timeout_ms 0: no deadline. */
int channel_open(struct link *l, struct link_channel *c, const struct link_channel_ops *ops,
		 uint64_t timeout_ms);
/* Legal on one that is not open. */
void channel_close(struct link_channel *c);
void channel_no_deadline(struct link_channel *c);
/* The warden broke the protocol: end the link, and tell everybody. */
void link_break(struct link *l, const char *what);
/* Stop reading, or go on, for a warden that knows no window. */
void link_hold(struct link *l, bool hold);
static inline void frame_close_fds(const struct frame *f, int *fds)
{
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
}
