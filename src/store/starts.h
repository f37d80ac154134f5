/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen starts. A sandbox with --dir starts on the host directory itself. Before its first
 * snapshot that directory is copied (sys/freeze). From then on the copy replaces it in everything
 * that is made from the sandbox: a snapshot never changes with the host.
 *
 * A start is a layer (store/layer_open.h) with an id that begins with '0':
 *
 *   layers/0ID/N         the whole directory of mount N; replaces the template's lowers
 *   layers/0ID/N.index   the state of its files on the host
 *   starts/HASH          link to 0ID/N: the last copy of a directory; HASH is the hash of its path
 *
 * A start is never merged with other layers, and freed like them. While it is made or chosen, a
 * snapshot of kind SNAPSHOT_FORK holds it. If its process is killed, the next layers_free() removes
 * it.
 */
#pragma once

#include "store/snapshots.h"

enum { START_LEVEL = 1000 }; /* level of its row, which no merge reaches */

struct start_hold {
	char id[ID_SIZE]; /* empty: nothing is held */
	int lock_fd;
};

int start_id_new(char out[ID_SIZE], struct err *e);
/* Hold a start that is being made, or an existing one. 1; 0: it no longer exists. */
int start_hold(struct catalog *c, const struct state *s, const char *start, bool exists,
	       struct start_hold *ret, struct err *e);
void start_release(struct catalog *c, const struct state *s, struct start_hold *h);

/* Add the row of a start whose files are in place; top: the layer below, or empty. */
int catalog_add_start(struct catalog *c, const char *start, const char *top, struct err *e);
/* 1: this start exists on this layer. */
int catalog_has_start(struct catalog *c, const char *start, const char *top, struct err *e);
/*
 * Make it the top of a sandbox whose current top is `top`. Durable. ESTALE if the sandbox has
 * another top.
 */
int catalog_set_start(struct catalog *c, const char *sandbox, const char *start, const char *top,
		      struct err *e);

/* The last copy of a directory, "0ID/N". 1; 0: none. */
int starts_find(const struct state *s, const char *key, char out[64]);
/* Remember the last copy. A failure only costs time later. */
void starts_remember(const struct state *s, const char *key, const char *start, int mount);
/* Forget copies that no longer exist. */
void starts_sweep(const struct state *s);
