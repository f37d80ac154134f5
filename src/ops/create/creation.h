/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates a sandbox in this order: lock, directory, warden, build request, catalog row. The warden
 * starts while we write the request, and builds while we write the row. Only then is the creation
 * acknowledged. Any failure undoes all of it.
 *
 * A sandbox that ends with its creator has a row only if it has a name or starts from a snapshot.
 * Otherwise its lock file describes it (store/locks.h).
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
 * Progress of a creation. After a failure, creation_destroy() undoes what the state lists (table in
 * creation.c).
 */
enum creation_state {
	CREATION_PLANNED, /* nothing exists yet */
	CREATION_LOCKED,  /* lock and directory exist */
	CREATION_STARTED, /* and a warden, which has no build request yet */
	CREATION_ASKED,	  /* and the warden builds, or was claimed; there may be a row */
	CREATION_READY,	  /* the warden has reported that it is built */
	CREATION_KEPT,	  /* it outlives this process, unless creation_destroy() ends it */
	CREATION_LEFT,	  /* its warden or its keeper cleans up; nothing for us to undo */
	CREATION_UNDONE,  /* everything is removed */
};
enum creation_from { FROM_COLD, FROM_POOL };

struct creation {
	enum creation_state at;
	enum creation_from from; /* FROM_POOL: its warden is not our child (claim.h) */
	struct cay *cay;	 /* borrowed */
	struct sandbox_row row;
	bool has_row;
	int lock_fd;   /* shared with the warden */
	int slot_fd;   /* also shared: the lock on its uid range */
	int record_fd; /* of its lock file, if another process created that file */
	int warden_fd; /* the creator's connection */
	pid_t warden_pid;
	uint64_t start_us;
	struct warnings warnings;
	struct buf recipe;	 /* what the sandbox is built from (store/snapshots.h) */
	char (*layers)[ID_SIZE]; /* sealed layers that it starts from, topmost first */
	size_t nlayers;
	char disk[sizeof((struct state *)0)->dir + 40]; /* its directory in storage, or empty */
	struct start start;				/* held until the creation is finished */
	const char *ready_dir; /* for a pool sandbox: the directory that lists it */
};

#define CREATION_INIT \
	.lock_fd = -1, .slot_fd = -1, .record_fd = -1, .warden_fd = -1, \
	.recipe = BUF_INIT(LIMIT_FRAME_BODY)

/* Creates nothing yet. c is borrowed. */
void creation_init(struct creation *n, struct cay *c);
/*
 * Opens the catalog if needed. Returns while the warden builds: messages to the warden wait until
 * the sandbox is ready, and a build failure arrives as the first reply.
 */
int creation_create(struct creation *n, const struct create_spec *spec, struct err *e);
/* What forks are made from: a sandbox's recipe, and the stack under `top` (empty: none). */
struct creation_source {
	char recipe_of[ID_SIZE], top[ID_SIZE];
	char owner[ID_SIZE]; /* of the forks; empty: the owner of the source */
};
/* Start the warden before its build request is known. */
int creation_start(struct creation *n, struct err *e);
/*
 * Prepare n forks that differ only in id, host name, machine id and name (empty: none). Claims
 * ready sandboxes as far as there are any; the others, and those already started, are only planned.
 * The caller must then call creation_finish() for each, which returns when the fork runs and stays.
 * On failure there are no forks.
 */
int creation_fork(struct creation *ns, size_t n, const struct creation_source *from,
		  char (*names)[64], struct err *e);
int creation_finish(struct creation *n, struct err *e);
/*
 * Make a ready sandbox for a pool (store/ready.h) from the recipe in n. top: topmost layer that it
 * starts from. It stays when this returns.
 */
int creation_ready(struct creation *n, struct str recipe, const char *top, const char *ready_dir,
		   struct err *e);
/* Fill in the recipe and the row that creation_create() would use. Creates nothing. */
int creation_plan(struct creation *n, const struct create_spec *spec, struct err *e);
/* Change the state. Returns false and changes nothing if the table forbids it. */
bool creation_move(struct creation *n, enum creation_state to);
/* Read one complete frame from a warden; it is borrowed from `in`. */
int creation_await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e);
/* Record the warnings in MSG_C_READY. */
void creation_take_warnings(struct creation *n, const struct frame *f);
/* Wait until it is ready. */
int creation_await(struct creation *n, struct err *e);
/* The sandbox runs: mark it so in its row and release it. */
int creation_release(struct creation *n, struct err *e);
/*
 * Open a link on n's connection to the warden, which n keeps too. The link reports ready if nobody
 * called creation_await().
 */
int creation_link(const struct creation *n, const struct link_ops *ops, struct link **ret,
		  struct err *e);
/* Show or hide a sandbox without a row in lists. Does nothing if it has a row. */
void creation_show(struct creation *n, bool shown);
/*
 * The command has ended; the warden ends too and removes everything. Returns false if there is a
 * row, which creation_destroy() has to remove.
 */
bool creation_leave(struct creation *n);
/* End the sandbox and remove everything of it. */
int creation_destroy(struct creation *n, struct err *e);
void creation_done(struct creation *n);
DEFINE_AUTO(struct creation, creation_done)
