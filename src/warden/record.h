/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of each call, while it runs and after it has ended: how it was asked for, its
 * result, and of a detached call its output and the clients that read it.
 *
 * A plain call belongs to the channel that it was asked for on, and ends with it. A detached call
 * belongs to nobody. Clients view it: each has a channel, a place in the output, and credit. While
 * a viewer follows the output, the command waits for the slowest one; without a viewer the oldest
 * output is dropped.
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
	bool follows; /* the output; else it only waits for the result */
	bool limited; /* by credit */
	bool writes;  /* stdin is this one's */
	bool told;    /* C_STARTED */
	bool existing;
	uint64_t credit;
	uint64_t dropped; /* what it asked for and is not there */
	struct retain_cursor at;
	struct viewer *next;	       /* of the record */
	struct viewer *next_of_client; /* of the client */
};

struct record {
	struct record *next; /* newer */
	uint32_t id;
	enum call_op op;
	bool tty, detached, has_output;
	char call_id[LIMIT_NAME + 1];
	uint8_t hash[SHA256_SIZE]; /* of the request */
	int pid;		   /* inside; 0: not started yet */
	uint64_t start_ms, ended_ns;
	struct call *call; /* NULL: it has ended */
	struct buf args;   /* fields */
	uint8_t last_type; /* C_EXIT, or C_ERROR */
	struct buf last;   /* its fields */
	struct retain output;
	struct viewer *viewers;
};

/* A call was asked for; sets c->record. */
int record_new(struct call *c, const struct ask *a, struct err *e);
/* It could not be started. */
void record_undo(struct call *c);
void record_started(struct call *c, int pid);
/* The last frame of the call; told to those that view it when they have the output. */
void record_ended(struct call *c, uint8_t type, struct str body);
/* The newest with this id of the caller; or by number. NULL: none. */
struct record *record_find(struct warden *w, struct str call_id);
struct record *record_by_number(struct warden *w, uint64_t id);
void record_hash(const struct ask *a, uint8_t out[SHA256_SIZE]);
/* MSG_C_CALLS */
int record_list(struct client *c, const struct frame *f, struct err *e);
void records_free(struct warden *w);

/* viewer.c */
/* MSG_C_ATTACH */
int viewer_attach(struct client *c, const struct frame *f, struct err *e);
/* The client of EXEC; existing: the call was there. */
int viewer_begin(struct client *c, uint32_t chan, const struct ask *a, struct record *r,
		 bool existing, struct err *e);
struct viewer *viewer_of(const struct client *c, uint32_t chan);
void viewer_credit(struct viewer *v, uint64_t bytes);
void viewer_free(struct viewer *v);
/* The client has room again, or is gone. */
void viewers_resume(struct client *c);
void viewers_forget(struct client *c);
/* The call has started, has more output, or has ended. */
void viewers_tell(struct record *r);
/* Stdin that the command took. */
void viewers_stdin_taken(struct record *r, size_t n);
/* One read of the call's output: its bytes, 0 at the end, -errno. */
ssize_t viewers_read(struct record *r, uint8_t type, int fd);
/* The slowest has enough to read. */
bool viewers_are_full(struct record *r);
