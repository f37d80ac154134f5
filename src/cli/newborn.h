/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a sandbox: lock, directory, warden, build request, catalog row, in this order: the
 * warden starts while the request is written, and builds while the row is. Only then is anything
 * acknowledged. Whatever fails, all of it is undone.
 *
 * One that ends with its creator and has no name gets its row only when it has lived for a
 * while (newborn_register). Nobody knows of it before, its lock tells that it is alive, and
 * what is found without a lock needs no row to be removed.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "cli/sandbox_options.h"
#include "store/catalog.h"
#include "store/state.h"
#include "wire/frame.h"

struct newborn {
	struct state state;
	struct catalog *catalog;
	struct sandbox_row row;
	int lock_fd;   /* shared with the warden */
	int slot_fd;   /* likewise: the lock on its range of uids */
	int warden_fd; /* the creator's connection */
	pid_t warden_pid;
	uint64_t start_us;
	struct buf recipe;	 /* store/snapshots.h; it is made of it */
	char (*layers)[ID_SIZE]; /* sealed ones that it starts from, topmost first */
	size_t nlayers;
	char disk[sizeof((struct state *)0)->dir + 40]; /* its directory in the pool, or empty */
	char program[LIMIT_PATH];			/* ours, for the warden */
	bool made;					/* there is something to undo */
	bool asked;					/* the warden has been told what to build */
	bool borrowed;					/* state and catalog are the caller's */
	bool early;	  /* its warden may start before it is known what is to be built */
	bool claimed;	  /* it was there already, and its warden is no child of ours (claim.h) */
	const char *warm; /* it is made for whoever comes: the directory that lists it */
};

#define NEWBORN_INIT \
	.state = { .fd = -1 }, .lock_fd = -1, .slot_fd = -1, .warden_fd = -1, \
	.recipe = BUF_INIT(LIMIT_FRAME_BODY)

/*
 * Opens the state directory, and the catalog where it needs it. ephemeral: ends with our
 * connection. It is being built when this returns: what is sent to its warden waits until it is
 * ready, and a failure to build comes as the first answer.
 */
int newborn_create(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e);
/* What forks are made of: a sandbox's recipe, and the stack under `top` (empty: none). */
struct newborn_origin {
	char recipe_of[ID_SIZE], top[ID_SIZE];
};
/* A warden that starts while it is found out what it is to build. s is borrowed. */
int newborn_hatch(struct newborn *n, const struct state *s, struct err *e);
/*
 * n of them, each its own in nothing but id, host name, machine id and name (empty: none), as far
 * as some are ready; the others, and those that were hatched, are only planned. s and c are
 * borrowed. newborn_finish() has to follow, for each: it runs and stays when that returns. On
 * failure there is none of them.
 */
int newborn_fork(struct newborn *ns, size_t n, const struct state *s, struct catalog *c,
		 const struct newborn_origin *from, char (*names)[64], struct err *e);
int newborn_finish(struct newborn *n, struct err *e);
/*
 * A ready one for whoever comes (store/warm.h), of the recipe that n holds; top: the layers that it
 * starts from. It stays when this returns.
 */
int newborn_ready(struct newborn *n, struct str recipe, const char *top, const char *warm,
		  struct err *e);
/* Up to the recipe and the row, nothing is made: what newborn_create() would build. */
int newborn_plan(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e);
/* One frame from a warden, whole; borrowed from `in`. */
int newborn_await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e);
/* Wait until it is ready. */
int newborn_await(struct newborn *n, struct err *e);
/* It lives: let go of it, with its row saying so. */
int newborn_release(struct newborn *n, struct err *e);
/* Make sure of the row, with the sandbox running. */
int newborn_register(struct newborn *n, struct err *e);
/*
 * Its command has ended, and its warden ends with it and removes all that it was. False where
 * there is a row that has to go with it: newborn_destroy().
 */
bool newborn_leave(struct newborn *n);
/* End it and remove all that it was. */
int newborn_destroy(struct newborn *n, struct err *e);
void newborn_done(struct newborn *n);
DEFINE_AUTO(struct newborn, newborn_done)
