/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers and snapshots in the catalog.
 *
 * A sealed layer is the directory layers/ID with one directory N per mount that was changed in
 * its time (the same numbers as below a sandbox's upper/); what is in them never changes. It lies
 * in the state directory, or in the pool where the sandbox had its files there (sys/layer.h). Its
 * row names the layer below it, so that a chain of rows is a stack. The top of a stack is what
 * a sandbox or a snapshot refers to; no top: nothing but the template below.
 *
 *   sandboxes.top ─┐
 *   snapshots.top ─┴> layer ─parent─> layer ─parent─> … ─> the template's lowers (recipe)
 *
 * A layer lives as long as something refers to it: catalog_free_layers(). Flattening gives a
 * layer another parent, one that holds what several did; what is seen through it stays the same.
 *
 * The recipe is the body of MSG_C_BUILD (wire/proto.h) without what belongs to one sandbox: all
 * that is needed to make another of the same kind, values of the environment included.
 *
 * Operations are journalled: a row of what will be done and under which ids comes first, on the
 * disk, then the warden acts, then one transaction puts the result and removes the row. At most one
 * per sandbox is under way, by whoever holds the lock sandboxes/ID/op. A row that is found with the
 * lock free is that of a command that was killed: cli/moment.c asks the warden how far it came,
 * store/lost.c looks at what a dead one left.
 */
#pragma once

#include "base/buf.h"
#include "store/catalog.h"

enum snapshot_kind {
	SNAPSHOT_USER, /* asked for */
	SNAPSHOT_TX,   /* the begin of a transaction that is open */
	SNAPSHOT_LOST, /* what a lost sandbox left */
	SNAPSHOT_FORK, /* holds the layers while forks are made of it: while locks/ID is held */
	SNAPSHOT_KINDS,
};

struct snapshot_row {
	char id[ID_SIZE];
	char name[64];	       /* empty: none */
	char sandbox[ID_SIZE]; /* that it was taken of; it may be gone */
	char template_[256];
	char top[ID_SIZE]; /* layer; empty: none */
	enum snapshot_kind kind;
	uint64_t created_ns;
	char *note; /* may be NULL */
	char *spec; /* as of the sandbox; may be NULL */
};

enum op_kind { OP_SNAPSHOT, OP_ROLLBACK };

enum op_result {
	OP_UNCHANGED, /* no layer was needed: nothing had changed */
	OP_SEALED, /* the changes are the layer, and the sandbox lies above it; or it was switched
		    * by a rollback */
	OP_COPIED, /* the layer is a copy of them, and the sandbox stays as it was */
};

struct op_row {
	char sandbox[ID_SIZE];
	enum op_kind kind;
	char layer[ID_SIZE];	/* to be sealed; of a rollback the target's top; empty: none */
	char snapshot[ID_SIZE]; /* to be made, or gone back to; empty: none */
	char name[64];
	enum snapshot_kind snapshot_kind;
	char *note;   /* may be NULL */
	bool unheard; /* found in the journal: whoever began it was not told how it ended */
};

void snapshot_row_done(struct snapshot_row *row);
void op_row_done(struct op_row *row);

/* By its whole id. 1, 0 where there is none, -1. */
int catalog_get_snapshot(struct catalog *c, const char *id, struct snapshot_row *ret,
			 struct err *e);
/* By id, name or unique prefix of an id, as catalog_find(). "snap:" before it is skipped. */
int catalog_find_snapshot(struct catalog *c, const char *ref, struct snapshot_row *ret,
			  struct err *e);
/* The latest of a sandbox that is of this kind. 1, 0 where there is none, -1. */
int catalog_last_snapshot(struct catalog *c, const char *sandbox, enum snapshot_kind kind,
			  struct snapshot_row *ret, struct err *e);
/* Oldest first; sandbox NULL: of all. fn as in catalog_each(). */
int catalog_each_snapshot(struct catalog *c, const char *sandbox,
			  int (*fn)(void *ctx, const struct snapshot_row *row), void *ctx,
			  struct err *e);
/* CONFLICT where the name is taken. Fills id and created_ns where they are empty. */
int catalog_add_snapshot(struct catalog *c, struct snapshot_row *row, struct err *e);
int catalog_del_snapshot(struct catalog *c, const char *id, struct err *e);

/* The recipe of a sandbox, which lives as long as it or a snapshot of it. NOT_FOUND. */
int catalog_recipe(struct catalog *c, const char *sandbox, struct buf *ret, struct err *e);
/* Another one in its place, for whatever is made of it from now on. Durable. */
int catalog_set_recipe(struct catalog *c, const char *sandbox, struct str body, struct err *e);

/* 1: a recipe of a sandbox, a snapshot or a pool has this text in it. */
int catalog_recipes_hold(struct catalog *c, const char *text, struct err *e);

/* With template and spec, which stand beside it, into a row that has none yet; or NULL. */
int catalog_recipe_row(struct catalog *c, const char *sandbox, struct buf *ret,
		       struct sandbox_row *row, struct err *e);

/*
 * The layers of a stack, topmost first; the caller frees *ret. An empty top has none. FAILED with
 * sys ESTALE where a layer is not in the catalog.
 */
int catalog_stack(struct catalog *c, const char *top, char (**ret)[ID_SIZE], size_t *ret_n,
		  struct err *e);
/* The top of a sandbox's stack, empty where there is none. */
int catalog_top(struct catalog *c, const char *id, char ret[ID_SIZE], struct err *e);

/* All that was committed is on the disk when this returns. */
int catalog_sync(struct catalog *c, struct err *e);

/* The journal. CONFLICT where one is there already. */
int catalog_op_begin(struct catalog *c, const struct op_row *op, struct err *e);
/* While the warden is at work: get ready to write down how it ends, and the end of the tx. */
void catalog_op_expect(struct catalog *c, bool tx);
/* 1: there is one. 0: none. */
int catalog_op_find(struct catalog *c, const char *sandbox, struct op_row *ret, struct err *e);
int catalog_op_cancel(struct catalog *c, const char *sandbox, struct err *e);
/*
 * It is done; CONFLICT where somebody else has ended it. below: the sandbox's top when it began
 * (empty: none).
 */
int catalog_op_done(struct catalog *c, const struct op_row *op, enum op_result result,
		    const char *below, struct err *e);

/*
 * The lock under which layers are removed and flattened. wait: until whoever holds it is done,
 * else -1 with CONFLICT. The caller closes *ret_fd.
 */
int layers_lock(const struct state *s, bool wait, int *ret_fd, struct err *e);
/*
 * With the lock: delete the rows of layers that nothing refers to, and remove their files, as
 * well as what lies below layers/ and has neither a row nor an operation. *ret_n counts,
 * *ret_bytes their size; both may be NULL, then sizes are not looked at.
 */
int catalog_free_layers(struct catalog *c, const struct state *s, int *ret_n, uint64_t *ret_bytes,
			struct err *e);
/* The same where nobody holds the lock; else it is left to whoever comes later. */
void catalog_free_layers_soon(struct catalog *c, const struct state *s);

/* Blocks in use below a directory; a file with several names counts in parts. */
uint64_t layers_disk_usage(int parent, const char *name);
/* How much work it is to copy one, in something like bytes. */
uint64_t layers_copy_cost(int layer);
