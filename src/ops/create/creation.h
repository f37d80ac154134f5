/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a sandbox: lock, directory, warden, build request, catalog row, in this order: the
 * warden starts while the request is written, and builds while the row is. Only then is anything
 * acknowledged. Whatever fails, all of it is undone.
 *
 * One that ends with its creator has a row only where it has a name or starts from a snapshot. Its
 * lock tells of the others (store/locks.h).
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "link/link.h"
#include "ops/cay.h"
#include "ops/create/create_check.h"
#include "ops/start.h"
#include "store/catalog.h"
#include "store/state.h"
#include "wire/frame.h"

/*
 * How far it has come. Whatever fails, creation_destroy() undoes what this state says is there
 * (creation.c has the table).
 */
enum creation_state {
	CREATION_PLANNED, /* nothing is there yet */
	CREATION_LOCKED,  /* lock and directory */
	CREATION_STARTED, /* and a warden that has not been told what to build */
	CREATION_ASKED,	  /* and the warden builds, or was claimed; there may be a row */
	CREATION_READY,	  /* the warden has said that it is built */
	CREATION_KEPT,	  /* it outlives us, unless it is destroyed after all */
	CREATION_LEFT,	  /* it is not ours to undo any more: its warden or its keeper sees to it */
	CREATION_UNDONE,  /* as if it had never been */
};
enum creation_from { FROM_COLD, FROM_POOL };

struct creation {
	enum creation_state at;
	enum creation_from from; /* FROM_POOL: its warden is no child of ours (claim.h) */
	struct cay *cay;	 /* borrowed */
	struct sandbox_row row;
	bool has_row;
	int lock_fd;   /* shared with the warden */
	int slot_fd;   /* likewise: the lock on its range of uids */
	int record_fd; /* of its lock file, where another process made that */
	int warden_fd; /* the creator's connection */
	pid_t warden_pid;
	uint64_t start_us;
	struct warnings warnings;
	struct buf recipe;	 /* store/snapshots.h; it is made of it */
	char (*layers)[ID_SIZE]; /* sealed ones that it starts from, topmost first */
	size_t nlayers;
	char disk[sizeof((struct state *)0)->dir + 40]; /* its directory in the pool, or empty */
	struct start start;				/* held until this is done with */
	const char *warm; /* it is made for whoever comes: the directory that lists it */
};

#define CREATION_INIT \
	.lock_fd = -1, .slot_fd = -1, .record_fd = -1, .warden_fd = -1, \
	.recipe = BUF_INIT(LIMIT_FRAME_BODY)

/* Nothing is there yet. c is borrowed. */
void creation_init(struct creation *n, struct cay *c);
/*
 * Opens the catalog where it needs it. It is being built when this returns: what is sent to its
 * warden waits until it is ready, and a failure to build comes as the first answer.
 */
int creation_create(struct creation *n, const struct create_spec *spec, struct err *e);
/* What forks are made of: a sandbox's recipe, and the stack under `top` (empty: none). */
struct creation_source {
	char recipe_of[ID_SIZE], top[ID_SIZE];
	char owner[ID_SIZE]; /* of the forks; empty: none */
};
/* Start its warden before it is known what it is to build. */
int creation_start(struct creation *n, struct err *e);
/*
 * n of them, each its own in nothing but id, host name, machine id and name (empty: none), as far
 * as some are ready; the others, and those that were started, are only planned.
 * creation_finish() has to follow, for each: it runs and stays when that returns. On failure there
 * is none of them.
 */
int creation_fork(struct creation *ns, size_t n, const struct creation_source *from,
		  char (*names)[64], struct err *e);
int creation_finish(struct creation *n, struct err *e);
/*
 * A ready one for whoever comes (store/warm.h), of the recipe that n holds; top: the layers that it
 * starts from. It stays when this returns.
 */
int creation_ready(struct creation *n, struct str recipe, const char *top, const char *warm,
		   struct err *e);
/* Up to the recipe and the row, nothing is made: what creation_create() would build. */
int creation_plan(struct creation *n, const struct create_spec *spec, struct err *e);
/* To the next state; false, and nothing is changed, where the table does not allow it. */
bool creation_move(struct creation *n, enum creation_state to);
/* One frame from a warden, whole; borrowed from `in`. */
int creation_await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e);
/* Remember what MSG_C_READY warns of. */
void creation_take_warnings(struct creation *n, const struct frame *f);
/* Wait until it is ready. */
int creation_await(struct creation *n, struct err *e);
/* It lives: let go of it, with its row saying so. */
int creation_release(struct creation *n, struct err *e);
/* A link on n's connection to the warden, which n keeps too; ready is told where nobody awaited it.
 */
int creation_link(const struct creation *n, const struct link_ops *ops, struct link **ret,
		  struct err *e);
/* Whether it is listed, though it has no row. Nothing where it has one. */
void creation_show(struct creation *n, bool shown);
/*
 * Its command has ended, and its warden ends with it and removes all that it was. False where
 * there is a row that has to go with it: creation_destroy().
 */
bool creation_leave(struct creation *n);
/* End it and remove all that it was. */
int creation_destroy(struct creation *n, struct err *e);
void creation_done(struct creation *n);
DEFINE_AUTO(struct creation, creation_done)
