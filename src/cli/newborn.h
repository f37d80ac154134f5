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
/* A warden that starts while it is found out what it is to build. s is borrowed. */
int newborn_hatch(struct newborn *n, const struct state *s, struct err *e);
/*
 * Of it one like the sandbox whose recipe this is, with the files of the stack under `top` (empty:
 * none): its own in nothing but id, host name, machine id and name (NULL: none). c is borrowed.
 */
int newborn_fork(struct newborn *n, struct catalog *c, const char *recipe_of, const char *top,
		 const char *name, struct err *e);
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
