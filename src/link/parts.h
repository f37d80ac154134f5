/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a link, for the files of this directory. */
#pragma once

#include "link/link.h"
#include "loop/conn.h"

enum { LINK_BUCKETS = 64 };

struct link {
	struct loop *loop;
	struct conn conn; /* conn.loop is NULL after the close */
	const struct link_ops *ops;
	void *owner;
	char id[ID_SIZE];
	unsigned version;
	struct link_channel *channels[LINK_BUCKETS]; /* hash table by channel number */
	int nchannels;
	uint32_t last_channel;
	int holds; /* number of calls that cannot take more output from a warden of version 2 */
	bool keeps_alive;
	uint64_t heard_ns; /* time of the last frame received */
	struct loop_timer ping;
	bool *gone; /* set to true if the link is freed while a callback runs */
};

struct link_channel_ops {
	/* Takes the descriptors. May end the channel and free the link. */
	void (*frame)(struct link_channel *c, const struct frame *f, int *fds);
	/* The channel is already closed. */
	void (*failed)(struct link_channel *c, const struct err *why);
	/* The deadline has passed: tell the warden. May close the channel. Optional. */
	void (*expired)(struct link_channel *c);
	/* The link can send again. Optional. */
	void (*drained)(struct link_channel *c);
};

/* Give the channel a number. 0 or -errno. timeout_ms 0: no deadline. */
int channel_open(struct link *l, struct link_channel *c, const struct link_channel_ops *ops,
		 uint64_t timeout_ms);
/* Legal on a closed channel. */
void channel_close(struct link_channel *c);
void channel_no_deadline(struct link_channel *c);
/* The warden broke the protocol: close the link and report it to every channel. */
void link_break(struct link *l, const char *what);
/* Stop or continue reading, for a warden that knows no window. */
void link_hold(struct link *l, bool hold);
static inline void frame_close_fds(const struct frame *f, int *fds)
{
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
}
