/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: a SQLite database (WAL) of templates, sandboxes and calls.
 *
 * What is acknowledged is durable: rows of sandboxes that outlive their creator are written
 * with a full sync; rows of ephemeral ones (cay run) are consistent but not synced, for
 * they cannot survive the machine anyway. Calls are indexed from the trace, which is their
 * journal: catalog_index_calls() reads what is new there, so a lost row is found again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "store/state.h"

struct catalog;

/*
 * Rootful sandboxes have a range of host uids each, told apart by their slot: the first uid of
 * slot n is UID_SLOT_BASE + n * UID_SLOT_SIZE. A row keeps its slot until it is deleted.
 */
#define UID_SLOT_BASE 0x70000000u
#define UID_SLOT_SIZE 65536u
#define UID_SLOTS     4096

struct sandbox_row {
	char id[ID_SIZE];
	char name[64]; /* empty: none */
	char template_[256];
	char state[16]; /* creating, running, lost */
	char *spec;	/* JSON object: options as given; may be NULL */
	bool ephemeral;
	int uid_slot; /* -1: rootless, none */
	uint64_t created_ns;
	char top[ID_SIZE]; /* topmost sealed layer (store/snapshots.h); empty: none */
	struct str recipe; /* only to be added, borrowed; none: no snapshots can be taken */
	const char (*layers)[ID_SIZE]; /* likewise: the stack that its warden was told of */
	size_t nlayers;
	bool held;    /* likewise: it holds them already (store/pools.h) */
	bool running; /* likewise: it is that, not `creating` */
};

struct call_row {
	uint32_t call;
	char call_id[64];
	char *argv;   /* JSON array */
	char *labels; /* JSON object or NULL */
	uint64_t start_ns;
	int64_t duration_us; /* -1: running */
	int status;	     /* wait(2) status; meaningless while running */
	char reason[32];     /* exit, signal, timeout, oom, killed, lost, failed */
	uint64_t out_bytes, err_bytes;
};

/*
 * Makes the database or brings it up to date where it must. A database of a newer program and
 * one that is damaged are refused. Not to be used across fork(2).
 */
int catalog_open(const struct state *s, struct catalog **ret, struct err *e);
void catalog_close(struct catalog *c);

/*
 * Insert in state `creating`, or `running` (set in row, as is created_ns where it is 0); where
 * want_uid_slot, row's own slot is taken (CONFLICT with sys EADDRINUSE where another has it), or
 * where that is -1 the lowest free one is chosen and set in row, LIMIT where all are taken.
 * CONFLICT with the holder's id where the name is taken.
 */
int catalog_add_sandbox(struct catalog *c, struct sandbox_row *row, bool want_uid_slot,
			struct err *e);
/* What is written between the two is written together, durably, or not at all: r < 0. */
int catalog_batch_begin(struct catalog *c, struct err *e);
int catalog_batch_end(struct catalog *c, int r, struct err *e);
/* One of the states above; NOT_FOUND. */
int catalog_set_state(struct catalog *c, const char *id, const char *state, struct err *e);
/* Deletes the row and its calls; 0 also where there is none. */
int catalog_del_sandbox(struct catalog *c, const char *id, struct err *e);
/*
 * By id, by name, or by a unique prefix of an id, in this order. NOT_FOUND (with the nearest
 * names in the hint), or INVALID where a prefix is ambiguous (hint lists the candidates).
 */
int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e);
/*
 * Oldest first. fn returns non-zero to stop. No transaction is open while fn runs, so it may use
 * the catalog; rows that go away meanwhile are left out.
 */
int catalog_each(struct catalog *c, int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx,
		 struct err *e);
void sandbox_row_done(struct sandbox_row *row);

/* Remember that a template of this name and kind was made or used. */
int catalog_note_template(struct catalog *c, const char *name, const char *kind, struct err *e);

/*
 * Bring the call rows of a sandbox up to date with its trace, of which only complete lines
 * count. NOT_FOUND where there is no such row; no trace is no error.
 */
int catalog_index_calls(struct catalog *c, const struct state *s, const char *id, struct err *e);
/* In order of their numbers; fn as in catalog_each(). */
int catalog_each_call(struct catalog *c, const char *id,
		      int (*fn)(void *ctx, const struct call_row *row), void *ctx, struct err *e);

/*
 * Look at up to `most` sandboxes (0: all) and directories; what is dead becomes `lost`, or is
 * removed where it was ephemeral or never finished; directories without a row are removed.
 * *ret_removed counts (NULL: not wanted). Never touches what is alive. A bounded look starts at
 * a random place, so that many of them see everything. Goes on after a failure and returns the
 * first one.
 */
int catalog_reconcile(struct catalog *c, const struct state *s, int most, int *ret_removed,
		      struct err *e);
/* The same for one sandbox. */
int catalog_reconcile_one(struct catalog *c, const struct state *s, const char *id, struct err *e);
