/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link: one connection to one warden, many channels on it, on one loop.
 *
 *   link_open, link_adopt ──> link ──> closed (once, last)
 *      link_ask ──> answer* ──> done          one question
 *      link_call ──> started, output* ──> ended   one call; link_attach joins one
 *      link_dial ──> done with a descriptor   one connection to a port inside
 *
 * Nothing here blocks; link/wait.h has blocking forms. A link buffers no output. It passes a call's
 * bytes to the callback, and the warden sends at most the window until link_call_taken().
 *
 * A warden is trusted with its own sandbox and nothing else. Whatever a warden sends, in whatever
 * order, each channel reports its end exactly once, and every buffer has a ceiling.
 *
 * Ownership: the opener of a link frees it. An ask, call or dial is memory of its owner, who must
 * not touch it until the link reports its end or the owner drops it. A callback may free anything,
 * even the link, but must not run a loop.
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

/* The content of MSG_C_READY. */
struct link_ready {
	int init_pid;
	uint64_t start_us;
	uint32_t uid_base; /* 0: the sandbox has no range of uids, or was not claimed */
	struct str fields; /* all fields, borrowed: LAYER*, WARNING* */
};

struct link_ops {
	/* The sandbox is built, or claimed. Optional. */
	void (*ready)(struct link *l, const struct link_ready *r);
	/* The connection has ended; every open channel has already reported its end. Optional. */
	void (*closed)(struct link *l, const struct err *why);
};

/* Everything that another process needs to continue a connection. */
struct link_given {
	int fd;
	unsigned version; /* of the protocol; 0: neither side has sent hello yet */
	uint32_t channel; /* the last channel number used */
};

/* A connected, non-blocking socket to a warden; the caller owns it. Errors as in link_open(). */
int link_socket(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* UNAVAILABLE if no warden answers; code warden.busy if it has too many clients at the moment. */
int link_open(struct loop *loop, const struct state *s, const char *id, const struct link_ops *ops,
	      void *owner, struct link **ret, struct err *e);
/* Takes given.fd, also on failure. */
int link_adopt(struct loop *loop, struct link_given given, const char *id,
	       const struct link_ops *ops, void *owner, struct link **ret, struct err *e);
/* Prepare for link_adopt() in another process. Frees the link on success. CONFLICT while a channel
 * is open or bytes are in transit. */
int link_give(struct link *l, struct link_given *ret, struct err *e);
/* NULL is legal. Open channels get no more callbacks. */
void link_free(struct link *l);
DEFINE_AUTO_PTR(struct link, link_free)

/* Replace the owner and its callbacks. */
void link_watch(struct link *l, const struct link_ops *ops, void *owner);
void *link_owner(const struct link *l);
const char *link_id(const struct link *l);
struct loop *link_loop(const struct link *l);
/* Protocol version; 0: the warden has not answered yet. */
unsigned link_version(const struct link *l);
/* Send PING while channels are open, and close the link if the warden stays silent. */
void link_keep_alive(struct link *l);
/* Send a frame without an answer on its own channel: BUILD, CLAIM, KEEP, LEASE_END. 0 or -errno. */
int link_tell(struct link *l, uint8_t type, struct str body);
/* Bytes queued that the warden has not read yet. */
size_t link_backlog(const struct link *l);

/* A channel of a link, embedded in an ask, a call or a dial. */
struct link_channel {
	struct link *link; /* NULL: not open */
	struct link_channel *next;
	uint32_t number;
	const struct link_channel_ops *ops;
	struct loop_timer deadline;
	bool *gone; /* set to true if the channel ends while a callback runs */
};

/* One question. */
struct link_ask {
	struct link_channel channel;
	/* One frame of the answer, except MSG_C_ERROR. 1: more follow, 0: complete, -1: invalid. */
	int (*answer)(struct link_ask *a, const struct frame *f);
	/* Runs once. why is NULL on success. */
	void (*done)(struct link_ask *a, const struct err *why);
};

/* The owner sets answer and done first. timeout_ms 0: none. 0, or -errno without callbacks. */
int link_ask(struct link *l, struct link_ask *a, uint8_t type, struct str body,
	     uint64_t timeout_ms);
/* Run no more callbacks for the ask. Legal after its end. */
void link_ask_drop(struct link_ask *a);

/* One connection to a port inside. */
struct link_dial {
	struct link_channel channel;
	/* Runs once. The callback owns fd; if fd is FD_NONE, why has the reason. */
	void (*done)(struct link_dial *d, int fd, const struct err *why);
};

int link_dial(struct link *l, struct link_dial *d, uint16_t port, uint64_t timeout_ms);
void link_dial_drop(struct link_dial *d);
