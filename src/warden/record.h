/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of each call, while it runs and after its end: its request, its result and, for a
 * detached call, its output and the clients that read it.
 *
 * A plain call belongs to the channel of its request, and ends with that channel. A detached call
 * belongs to no channel. Clients view it: each viewer has a channel, a position in the output, and
 * credit. While a viewer follows the output, the command waits for the slowest viewer. Without a
 * viewer, the oldest output is dropped.
 */
#pragma once

#include "base/sha256.h"
#include "warden/call/call.h"
#include "warden/call/retain.h"

struct record;

struct viewer {
	struct record *record;
	struct client *client;
	uint32_t chan;
	bool follows; /* follows the output; false: waits only for the result */
	bool limited; /* grants credit for output */
	bool writes;  /* owns stdin */
	bool told;    /* C_STARTED was sent */
	bool existing;
	uint64_t credit;
	uint64_t dropped; /* requested bytes that are no longer kept */
	struct retain_cursor at;
	struct viewer *next;	       /* next viewer of the record */
	struct viewer *next_of_client; /* next viewer of the client */
};

struct record {
	struct record *next; /* next newer record */
	uint32_t id;
	enum call_op op;
	bool tty, detached, has_output;
	char call_id[LIMIT_NAME + 1];
	uint8_t hash[SHA256_SIZE]; /* hash of the request */
	int pid;		   /* inside; 0: not started yet */
	uint64_t start_ms, ended_ns;
	struct call *call; /* NULL: the call has ended */
	struct buf args;   /* argument fields */
	uint8_t last_type; /* C_EXIT or C_ERROR */
	struct buf last;   /* fields of that frame */
	struct retain output;
	struct viewer *viewers;
};

/* Record a new request; sets c->record. */
int record_new(struct call *c, const struct ask *a, struct err *e);
/* The call could not be started: remove its record. */
void record_undo(struct call *c);
void record_started(struct call *c, int pid);
/* Record the last frame of the call. Each viewer gets it after the output. */
void record_ended(struct call *c, uint8_t type, struct str body);
/* Find the newest record with the caller's id, or a record by number. NULL: none. */
struct record *record_find(struct warden *w, struct str call_id);
struct record *record_by_number(struct warden *w, uint64_t id);
void record_hash(const struct ask *a, uint8_t out[SHA256_SIZE]);
/* MSG_C_CALLS */
int record_list(struct client *c, const struct frame *f, struct err *e);
void records_free(struct warden *w);

/* viewer.c */
/* MSG_C_ATTACH */
int viewer_attach(struct client *c, const struct frame *f, struct err *e);
/* The client of EXEC becomes a viewer; existing: the call was already there. */
int viewer_begin(struct client *c, uint32_t chan, const struct ask *a, struct record *r,
		 bool existing, struct err *e);
struct viewer *viewer_of(const struct client *c, uint32_t chan);
void viewer_credit(struct viewer *v, uint64_t bytes);
void viewer_free(struct viewer *v);
/* The client's connection has room again, or the client is gone. */
void viewers_resume(struct client *c);
void viewers_forget(struct client *c);
/* The call has started, has more output, or has ended. */
void viewers_tell(struct record *r);
/* The command has read n bytes of stdin. */
void viewers_stdin_taken(struct record *r, size_t n);
/* Read the call's output once: number of bytes, 0 at the end, -errno. */
ssize_t viewers_read(struct record *r, uint8_t type, int fd);
/* True if the slowest viewer has enough unread output. */
bool viewers_are_full(struct record *r);
