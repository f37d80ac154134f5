/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: a SQLite database (WAL) of templates, sandboxes and calls.
 *
 * Acknowledged changes are durable: rows of sandboxes that outlive their creator are written with a
 * full sync. Rows of ephemeral sandboxes (cay run) are consistent but not synced, because such a
 * sandbox does not survive the machine anyway. The trace is the journal of calls:
 * catalog_index_calls() reads its new lines, so a lost row is restored.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "store/state.h"

struct catalog;
struct request_key;

/*
 * Each rootful sandbox has a range of host uids, identified by its slot. The first uid of slot n is
 * UID_SLOT_BASE + n * UID_SLOT_SIZE. A row keeps its slot until it is deleted.
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
	char owner[ID_SIZE]; /* id of the API key that created it (store/keys.h); empty: none */
	char top[ID_SIZE];   /* topmost sealed layer (store/snapshots.h); empty: none */
	struct str recipe;   /* only for adding, borrowed; none: no snapshots can be taken */
	const char (*layers)[ID_SIZE]; /* only for adding: the stack that the warden was given */
	size_t nlayers;
	bool held;    /* only for adding: it already pins its layers (store/pools.h) */
	bool running; /* only for adding: state `running`, not `creating` */
	const struct request_key *request; /* only for adding: store/requests.h; or NULL */
	bool unlisted; /* found only by its lock (store/locks.h): it has no row */
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
 * Creates the database or upgrades it if needed. Refuses a database of a newer program and a
 * damaged one. Not to be used across fork(2).
 */
int catalog_open(const struct state *s, struct catalog **ret, struct err *e);
void catalog_close(struct catalog *c);

/*
 * Insert in state `creating`, or `running` if row->running; sets both in row, and created_ns if it
 * is 0. With want_uid_slot, use row's slot (CONFLICT with sys EADDRINUSE if it is taken); if that
 * is -1, choose the lowest free slot and set it in row, or LIMIT if all are taken. CONFLICT with
 * the owner's id if the name is taken.
 */
int catalog_add_sandbox(struct catalog *c, struct sandbox_row *row, bool want_uid_slot,
			struct err *e);
/* Writes between the two are one durable transaction. r < 0 rolls it back. */
int catalog_batch_begin(struct catalog *c, struct err *e);
int catalog_batch_end(struct catalog *c, int r, struct err *e);
/* One of the states above; NOT_FOUND. */
int catalog_set_state(struct catalog *c, const char *id, const char *state, struct err *e);
/* Deletes the row and its calls; 0 also if there is none. */
int catalog_del_sandbox(struct catalog *c, const char *id, struct err *e);
/*
 * Find by id, by name, or by a unique prefix of an id, in this order; also a running sandbox
 * without a row (store/locks.h). NOT_FOUND (the hint has the nearest names), or INVALID if a prefix
 * is ambiguous (the hint lists the candidates).
 */
int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e);
/*
 * Oldest first, including running sandboxes without a row. fn returns non-zero to stop. No
 * transaction is open while fn runs, so fn may use the catalog. Rows deleted meanwhile are left
 * out.
 */
int catalog_each(struct catalog *c, int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx,
		 struct err *e);
void sandbox_row_done(struct sandbox_row *row);

/* Record that a template of this name and kind was made or used. */
int catalog_note_template(struct catalog *c, const char *name, const char *kind, struct err *e);

/*
 * Update the call rows of a sandbox from its trace; only complete lines count. NOT_FOUND if there
 * is no such sandbox row; a missing trace is no error.
 */
int catalog_index_calls(struct catalog *c, const struct state *s, const char *id, struct err *e);
/* In order of their numbers; fn as in catalog_each(). */
int catalog_each_call(struct catalog *c, const char *id,
		      int (*fn)(void *ctx, const struct call_row *row), void *ctx, struct err *e);
