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

#include "store/state.h"

struct catalog;

struct sandbox_row {
	char id[ID_SIZE];
	char name[64];	     /* empty: none */
	char template_[256];
	char state[16];	     /* creating, running, lost */
	char *spec;	     /* JSON object: options as given; may be NULL */
	bool ephemeral;
	int uid_slot;	     /* -1: rootless, none */
	uint64_t created_ns;
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

int catalog_open(const struct state *s, struct catalog **ret, struct err *e);
void catalog_close(struct catalog *c);

/*
 * Insert in state `creating`; where want_uid_slot, the lowest free slot is chosen and set in
 * row. CONFLICT with the holder's id where the name is taken.
 */
int catalog_add_sandbox(struct catalog *c, struct sandbox_row *row, bool want_uid_slot,
			struct err *e);
int catalog_set_state(struct catalog *c, const char *id, const char *state, struct err *e);
/* Deletes the row and its calls; 0 also where there is none. */
int catalog_del_sandbox(struct catalog *c, const char *id, struct err *e);
/*
 * By id, by name, or by a unique prefix of an id, in this order. NOT_FOUND (with the nearest
 * names in the hint), or INVALID where a prefix is ambiguous (hint lists the candidates).
 */
int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e);
/* Oldest first. fn returns non-zero to stop. */
int catalog_each(struct catalog *c, int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx,
		 struct err *e);
void sandbox_row_done(struct sandbox_row *row);

int catalog_note_template(struct catalog *c, const char *name, const char *kind, struct err *e);

/* Bring the call rows of a sandbox up to date with its trace. */
int catalog_index_calls(struct catalog *c, const struct state *s, const char *id, struct err *e);
int catalog_each_call(struct catalog *c, const char *id,
		      int (*fn)(void *ctx, const struct call_row *row), void *ctx, struct err *e);

/*
 * Look at up to `most` sandboxes (0: all) and directories; what is dead becomes `lost`, or is
 * removed where it was ephemeral or never finished; directories without a row are removed.
 * *ret_removed counts. Never touches what is alive.
 */
int catalog_reconcile(struct catalog *c, const struct state *s, int most, int *ret_removed,
		      struct err *e);
