/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready sandboxes, on disk: made ahead, each waiting in its own warden for an owner.
 *
 *   warm/lock        held by the keeper, which makes them (cli/keeper.h)
 *   warm/KEY/        one directory per kind; ID in it for each ready one, made and removed by
 *                    its warden, and .claims, a byte per claim
 *
 * They have no row in the catalog until they are claimed: nobody knows of them, and what is left
 * of a dead one is found as that of any sandbox is (store/reconcile.c). Those over layers of
 * a snapshot hold them by rows of `uses` (store/pools.h).
 *
 * The key is the hash of all that cannot be changed any more once a sandbox is built: the part of
 * its recipe that says how, the files of the host that it shows, the programs that make it, and
 * what a warden inherits from whoever starts it (control group, limits, namespaces, rights, other
 * than signals, terminal and environment). So who finds a directory by his own key gets what he
 * would have got from a warden of his own, and whatever has changed meanwhile is not found.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/state.h"

enum { WARM_KEY = 41, WARM_MOST = 1024 };

/*
 * warden: path of the program, beside which cay-init lies. top: topmost layer, or empty. 1; 0: of
 * this kind none can be made ahead; or -errno.
 */
int warm_key(const struct state *s, const char *warden, struct str recipe, const char *top,
	     char ret[WARM_KEY]);
/* The fields of a recipe that an owner chooses (late) or that say what is built. 0 or -errno. */
int warm_split(struct str recipe, bool late, struct buf *ret);

/* The directory of a kind, for reading; -ENOENT where there is none. */
int warm_open_kind(const struct state *s, const char *key);
/* The same, made where it is missing. */
int warm_make_kind(const struct state *s, const char *key);
/* Ids in such a directory; the caller frees *ret. 0 or -errno. */
int warm_list(int kind_fd, char (**ret)[ID_SIZE], size_t *ret_n);
/* Its keys, likewise. */
int warm_kinds(const struct state *s, char (**ret)[WARM_KEY], size_t *ret_n);
/* How many have been claimed of a kind since its directory was made. */
uint64_t warm_claims(const struct state *s, const char *key);
/* Take a kind away that lists nobody any more; all of warm/ with the last. */
void warm_drop_kind(const struct state *s, const char *key);
void warm_drop(const struct state *s);

/* There is something to keep. */
bool warm_exists(const struct state *s);
/* Be the keeper: its lock, which the caller closes; -EWOULDBLOCK where there is one. */
int warm_lock(const struct state *s);
/* The keeper's pid, 0 where there is none. */
long warm_keeper(const struct state *s);
/* Let the keeper look again. */
void warm_poke(const struct state *s);
