/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready sandboxes on disk: made in advance, each waiting in its own warden for a claim.
 *
 *   ready/lock        held by the keeper, which makes them
 *   ready/KEY/        one directory per pool key. Each warden lists its ready sandbox there as ID;
 *                    .claims has a byte per claim. Of a key that a server wants by demand
 *                    (ops/pool/demand.h), .misses has a byte per sandbox that was not ready,
 *                    and .record what to build
 *   warm/demand      held by a server that wants pools by demand; the text is how many at most
 *
 * They have no row in the catalog until they are claimed. Reconcile finds what a dead one left, as
 * for any sandbox (ops/reconcile.c). Those over layers of a snapshot pin them by rows of `uses`
 * (store/pools.h).
 *
 * The pool key is a hash of everything that cannot change after a sandbox is built:
 * - the part of its recipe that says what to build
 * - the host files that it shows, and the programs that make it
 * - what a warden inherits from its starter and cannot change (namespaces, seccomp filters; not
 *   limits, priority, session: sys/process/normal.h)
 *
 * So a client that finds a directory by its own key gets what its own warden would have built.
 * After any such change the key differs, and the old sandboxes are not found.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/state.h"

enum { READY_KEY = 41, READY_MOST = 1024 };

/* Open the directory of a pool key for reading; -ENOENT if there is none. */
int ready_open_key(const struct state *s, const char *key);
/* The same, made if missing. */
int ready_make_key(const struct state *s, const char *key);
/* Ids in such a directory; the caller frees *ret. 0 or -errno. */
int ready_list(int key_fd, char (**ret)[ID_SIZE], size_t *ret_n);
/* All pool keys; the caller frees *ret. */
int ready_keys(const struct state *s, char (**ret)[READY_KEY], size_t *ret_n);
/* Number of claims of a pool key since its directory was made. */
uint64_t ready_claims(const struct state *s, const char *key);

/* Demand. Note that n sandboxes of a pool key were not ready, and what to build. 0 or -errno. */
int ready_note_misses(const struct state *s, const char *key, struct str record, size_t n);
/* -ENOENT: the key is not wanted by demand. */
int ready_read_record(const struct state *s, const char *key, struct buf *ret);
struct ready_use {
	uint64_t used;	/* claims and misses since the record was written */
	uint64_t age_s; /* of the record */
};
int ready_use(const struct state *s, const char *key, struct ready_use *ret);
/* How many the keeper keeps ready by demand; for lists. */
void ready_note_wanted(const struct state *s, const char *key, uint32_t wanted);
uint32_t ready_wanted(const struct state *s, const char *key);
/* Become the server that wants pools. The lock; -EWOULDBLOCK if there is one. */
int ready_demand_lock(const struct state *s, uint32_t most);
void ready_demand_unlock(const struct state *s, int *fd);
/* False if no server wants any. Removes what a dead server left. */
bool ready_demand_settings(const struct state *s, uint64_t *ret_most);
/* True if a server may want some; faster. */
bool ready_demand_exists(const struct state *s);

/* Remove a pool key without ready sandboxes; all of ready/ with the last. */
void ready_drop_key(const struct state *s, const char *key);
void ready_drop(const struct state *s);

/* True if there are ready sandboxes to keep. */
bool ready_exists(const struct state *s);
/*
 * Become the keeper. Returns the lock, which the caller closes; -EWOULDBLOCK if there is a keeper.
 */
int ready_lock(const struct state *s);
/* The keeper's pid; 0 if there is none. */
long ready_keeper(const struct state *s);
/* Wake the keeper. */
void ready_wake_keeper(const struct state *s);
