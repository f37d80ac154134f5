/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link: one connection to one warden, many channels on it, on one loop.
 *
 *   link_open, link_adopt ──> link ──> closed (told once, last)
 *      link_ask ──> answer* ──> done          one question
 *      link_call ──> started, output* ──> ended   one call; link_attach joins one
 *      link_dial ──> done with a descriptor   one connection to a port inside
 *
 * Nothing here blocks; link/wait.h has blocking forms. A link buffers no output: a call's bytes go
 * to its callback, and the warden sends no more than the window until link_call_taken().
 *
 * A warden is trusted with its own sandbox and nothing else: whatever it sends, in whatever order,
 * each channel is told its end exactly once, and no buffer grows without a limit.
 *
 * Ownership: whoever opens a link frees it. An ask, a call, a dial is memory of its owner, who
 * leaves it alone until it is told the end, or drops it. Callbacks may free anything, also the
 * link, and run no loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"
#include "store/state.h"
#include "wire/frame.h"
#include "wire/proto.h"

struct link;

/* What MSG_C_READY says. */
struct link_ready {
	int init_pid;
	uint64_t start_us;
	uint32_t uid_base; /* 0: it has no range of uids, or was not claimed */
	struct str fields; /* all of it, borrowed: LAYER*, WARNING* */
};

struct link_ops {
	/* The sandbox is built, or claimed. Optional. */
	void (*ready)(struct link *l, const struct link_ready *r);
	/* The connection is over; open channels were told before. Optional. */
	void (*closed)(struct link *l, const struct err *why);
};

/* What another process needs to go on with a connection. */
struct link_given {
	int fd;
	unsigned version; /* of the protocol; 0: nobody has said hello yet */
	uint32_t channel; /* the last number used */
};

/* UNAVAILABLE where no warden answers; code warden.busy: it has too many clients just now. */
int link_open(struct loop *loop, const struct state *s, const char *id, const struct link_ops *ops,
	      void *owner, struct link **ret, struct err *e);
/* Takes given.fd, whatever the result. */
int link_adopt(struct loop *loop, struct link_given given, const char *id,
	       const struct link_ops *ops, void *owner, struct link **ret, struct err *e);
/* For link_adopt() in another process. Frees the link, but where it fails: CONFLICT while a channel
 * is open or bytes are under way. */
int link_give(struct link *l, struct link_given *ret, struct err *e);
/* NULL is legal. Open channels hear nothing more. */
void link_free(struct link *l);
DEFINE_AUTO_PTR(struct link, link_free)

/* Who hears of it from now on. */
void link_watch(struct link *l, const struct link_ops *ops, void *owner);
void *link_owner(const struct link *l);
const char *link_id(const struct link *l);
struct loop *link_loop(const struct link *l);
/* Of the protocol; 0: the warden has not answered yet. */
unsigned link_version(const struct link *l);
/* PING while channels are open; close the link where the warden is silent. */
void link_keep_alive(struct link *l);
/* A frame that has no answer on a channel of its own: BUILD, CLAIM, KEEP, LEASE_END. 0 or -errno.
 */
int link_tell(struct link *l, uint8_t type, struct str body);
/* Bytes that the warden has not taken yet. */
size_t link_backlog(const struct link *l);

/* A channel of a link; embedded in what is asked. */
struct link_channel {
	struct link *link; /* NULL: not open */
	struct link_channel *next;
	uint32_t number;
	const struct link_channel_ops *ops;
	struct loop_timer deadline;
	bool *gone; /* set when it ends while a callback runs */
};

/* One question. */
struct link_ask {
	struct link_channel channel;
	/* A frame of the answer, but MSG_C_ERROR. 1: more to come, 0: that is all, -1: it makes no
	 * sense. */
	int (*answer)(struct link_ask *a, const struct frame *f);
	/* Once. NULL: well. */
	void (*done)(struct link_ask *a, const struct err *why);
};

/* The owner sets answer and done before. timeout_ms 0: none. 0, or -errno and nothing is told. */
int link_ask(struct link *l, struct link_ask *a, uint8_t type, struct str body,
	     uint64_t timeout_ms);
/* Nothing more is told of it. Legal on one that has ended. */
void link_ask_drop(struct link_ask *a);

/* One connection to a port inside. */
struct link_dial {
	struct link_channel channel;
	/* Once. fd is the callback's; FD_NONE: why says it. */
	void (*done)(struct link_dial *d, int fd, const struct err *why);
};

int link_dial(struct link *l, struct link_dial *d, uint16_t port, uint64_t timeout_ms);
void link_dial_drop(struct link_dial *d);
