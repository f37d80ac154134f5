/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers and snapshots in the catalog.
 *
 * A sealed layer is the directory layers/ID with one directory N per mount that changed in its time
 * (the same numbers as below a sandbox's upper/). Its content never changes. It is in the state
 * directory, or in storage if the sandbox had its files there (store/layer_open.h). Its row names
 * the layer below it, so a chain of rows is a stack. A sandbox or a snapshot refers to the top of a
 * stack; without a top there is only the template.
 *
 *   sandboxes.top ─┐
 *   snapshots.top ─┴> layer ─parent─> layer ─parent─> … ─> the template's lowers (recipe)
 *
 * A layer lives as long as something refers to it: layers_free(). Flattening gives a layer
 * another parent, which holds what several did; the visible files stay the same.
 *
 * The recipe is the body of MSG_C_BUILD (wire/proto.h) without what belongs to one sandbox. It has
 * everything needed to make another such sandbox, including environment values.
 *
 * Operations are journalled. First a row with the plan and its ids is written to disk. Then the
 * warden acts. Then one transaction stores the result and removes the row. A sandbox has at most
 * one operation in progress, by the process that holds the lock sandboxes/ID/op. A row without a
 * held lock belongs to a killed command: the command line asks the warden how far it came, and
 * ops/lost.c checks what a dead sandbox left.
 */
#pragma once

#include "base/buf.h"
#include "store/catalog.h"

enum snapshot_kind {
	SNAPSHOT_USER, /* made by a user */
	SNAPSHOT_TX,   /* the start of an open transaction */
	SNAPSHOT_LOST, /* what a lost sandbox left */
	SNAPSHOT_FORK, /* pins the layers during forks: while locks/ID is held */
	SNAPSHOT_KINDS,
};

struct snapshot_row {
	char id[ID_SIZE];
	char name[64];	       /* empty: none */
	char sandbox[ID_SIZE]; /* its source, which may be gone */
	char template_[256];
	char top[ID_SIZE]; /* layer; empty: none */
	enum snapshot_kind kind;
	uint64_t created_ns;
	char *note; /* may be NULL */
	char *spec; /* as of the sandbox; may be NULL */
};

enum op_kind { OPERATION_SNAPSHOT, OPERATION_ROLLBACK };

enum op_result {
	OPERATION_UNCHANGED, /* nothing had changed: no layer was needed */
	OPERATION_SEALED, /* the changes became the layer, below the sandbox; or a rollback switched
			     it */
	OPERATION_COPIED, /* the layer is a copy, and the sandbox is unchanged */
};

struct operation_row {
	char sandbox[ID_SIZE];
	enum op_kind kind;
	char layer[ID_SIZE];	/* to seal; for a rollback the target's top; empty: none */
	char snapshot[ID_SIZE]; /* to make, or to go back to; empty: none */
	char name[64];
	enum snapshot_kind snapshot_kind;
	char *note;   /* may be NULL */
	bool unheard; /* found in the journal: its caller never got the result */
};

void snapshot_row_done(struct snapshot_row *row);
void operation_row_done(struct operation_row *row);

/* By whole id. 1, 0 if there is none, -1. */
int catalog_get_snapshot(struct catalog *c, const char *id, struct snapshot_row *ret,
			 struct err *e);
/* By id, name or unique prefix of an id, as catalog_find(). Skips a leading "snap:". */
int catalog_find_snapshot(struct catalog *c, const char *ref, struct snapshot_row *ret,
			  struct err *e);
/* The latest snapshot of this kind of a sandbox. 1, 0 if there is none, -1. */
int catalog_last_snapshot(struct catalog *c, const char *sandbox, enum snapshot_kind kind,
			  struct snapshot_row *ret, struct err *e);
/* Oldest first; sandbox NULL: of all. fn as in catalog_each(). */
int catalog_each_snapshot(struct catalog *c, const char *sandbox,
			  int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx,
			  struct err *e);
/* CONFLICT if the name is taken. Sets id and created_ns if they are empty. */
int catalog_add_snapshot(struct catalog *c, struct snapshot_row *row, struct err *e);
int catalog_del_snapshot(struct catalog *c, const char *id, struct err *e);

/* The recipe of a sandbox; it lives as long as the sandbox or a snapshot of it. NOT_FOUND. */
int catalog_recipe(struct catalog *c, const char *sandbox, struct buf *ret, struct err *e);
/* Replace the recipe for everything made from it in future. Durable. */
int catalog_set_recipe(struct catalog *c, const char *sandbox, struct str body, struct err *e);

/* 1: a recipe of a sandbox, a snapshot or a pool contains this text. */
int catalog_recipes_hold(struct catalog *c, const char *text, struct err *e);

/* The recipe, with its template, spec and owner set in `row`, unless row is NULL. */
int catalog_recipe_row(struct catalog *c, const char *sandbox, struct buf *ret,
		       struct sandbox_row *row, struct err *e);

/*
 * The layers of a stack, topmost first; the caller frees *ret. Empty for an empty top. FAILED with
 * sys ESTALE if a layer is not in the catalog.
 */
int catalog_stack(struct catalog *c, const char *top, char (**ret)[ID_SIZE], size_t *ret_n,
		  struct err *e);
/* The top of a sandbox's stack; empty if there is none. */
int catalog_top(struct catalog *c, const char *id, char ret[ID_SIZE], struct err *e);

/* Flush all commits to the disk. */
int catalog_sync(struct catalog *c, struct err *e);

/* Write the journal row. CONFLICT if there is one already. */
int catalog_op_begin(struct catalog *c, const struct operation_row *op, struct err *e);
/* 1: there is one. 0: none. */
int catalog_op_find(struct catalog *c, const char *sandbox, struct operation_row *ret,
		    struct err *e);
int catalog_op_cancel(struct catalog *c, const char *sandbox, struct err *e);
/*
 * Store the result; CONFLICT if another process has ended the operation. below: the sandbox's top
 * when it began (empty: none).
 */
int catalog_op_done(struct catalog *c, const struct operation_row *op, enum op_result result,
		    const char *below, struct err *e);
