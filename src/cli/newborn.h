/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a sandbox: lock, directory, warden, catalog row, build request, in this order. The
 * warden's program loads while the row is written. Whatever fails, all of it is undone.
 */
#pragma once

#include "cli/sandbox_options.h"
#include "store/catalog.h"
#include "store/state.h"

struct newborn {
	struct state state;
	struct catalog *catalog;
	struct sandbox_row row;
	int lock_fd;   /* shared with the warden */
	int warden_fd; /* the creator's connection */
	pid_t warden_pid;
	uint64_t start_us;
	bool made;  /* there is something to undo */
	bool asked; /* the warden has been told what to build */
};

/* Opens the state directory and the catalog as well. ephemeral: ends with our connection. */
int newborn_create(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e);
/* It lives: let go of it, with its row saying so. */
int newborn_release(struct newborn *n, struct err *e);
/* End it and remove all that it was. */
int newborn_destroy(struct newborn *n, struct err *e);
void newborn_done(struct newborn *n);
DEFINE_AUTO(struct newborn, newborn_done)
