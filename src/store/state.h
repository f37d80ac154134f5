/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: where it is, what lies in it, and who is alive.
 *
 *   catalog.db            the catalog (store/catalog.h)
 *   locks/ID              held (flock) by the warden of ID for its whole life; or, where ID is a
 *                         snapshot of kind SNAPSHOT_FORK, by whoever forks of it
 *   uids                  one byte per range of uids, locked by the warden that has it
 *   sandboxes/ID/         sock, trace.jsonl, upper/N, work/N.G, stage, files.index (when large),
 *                         op (lock of snapshots and rollbacks), next, old (while they happen)
 *   layers/ID/N           sealed layers (store/snapshots.h)
 *   ended/ID.jsonl        traces of ended sandboxes: the latest LIMIT_ENDED of them, or as many
 *                         as CAY_KEEP_ENDED says (an eighth more may lie there until trimmed)
 *   templates/            layers
 *   pool, pool.img        where there is one (store/pool.h)
 *   warm/                 likewise: lists of ready sandboxes (store/warm.h)
 *
 * A sandbox is alive while its lock is held. The creator takes the lock, then makes the
 * directory, then the catalog row, then starts the warden, which inherits the lock's
 * descriptor. So whatever is found without a held lock is a leftover of something dead.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum { ID_MAX = 20, ID_LEN = 12, ID_SIZE = ID_MAX + 1 };

struct state {
	char dir[3072]; /* absolute */
	int fd;		/* of it */
};

/* Only s->dir, as below; nothing is made. INVALID where there is no place for it. */
int state_locate(struct state *s, struct err *e);
/*
 * CAY_STATE, else /var/lib/cay for root, else $XDG_STATE_HOME/cay or ~/.local/state/cay. Made 0700
 * with its subdirectories. NOT_ALLOWED where it belongs to somebody else or others can write.
 */
int state_open(struct state *s, struct err *e);
void state_done(struct state *s);

/* [a-z0-9]{8,20} */
bool state_id_ok(const char *id);
/* [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62} */
bool state_name_ok(const char *name);
/* ID_LEN random characters, the first a letter. */
int state_id_new(char out[ID_SIZE], struct err *e);

/*
 * Take the lock of a new or dead sandbox. CONFLICT where it is held, said after some 20 ms: a
 * holder that only looks (state_is_alive) is gone by then. Caller owns the fd.
 */
int state_lock(const struct state *s, const char *id, int *ret_fd, struct err *e);
bool state_is_alive(const struct state *s, const char *id);
/* Of a lock that stands for nothing else on the disk: its file goes, and fd is closed. */
void state_unlock(const struct state *s, const char *id, int fd);
/*
 * A uid slot below `slots` that no living sandbox has: a lock on one byte of the file `uids`,
 * held as long as ret_fd (and what inherits it) is open. The catalog may still know a dead
 * sandbox that has it. LIMIT where all are taken.
 */
int state_take_slot(const struct state *s, int slots, int *ret_slot, int *ret_fd, struct err *e);
/* Directory of a sandbox as an open descriptor; NOT_FOUND. Caller owns the fd. */
int state_sandbox_open(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* Put the trace of a sandbox that has ended into ended/: 1, 0 where it has none, or -errno. */
int state_save_trace(const struct state *s, const char *id);
/* Then older ones make room. 0 or -errno. */
int state_trim_ended(const struct state *s);
/*
 * Remove a dead sandbox's files: its trace goes to ended/ (older ones make room), the rest
 * is deleted, its control groups (named cay-ID) too, the lock last. Needs the lock held by
 * the caller in lock_fd, which is closed in any case. Idempotent: after a failure what could
 * not be removed is still there, with its path in the error, and can be tried again. Delete
 * the catalog row afterwards, not before: it keeps the uid slot of what lies here.
 */
int state_remove(const struct state *s, const char *id, int lock_fd, struct err *e);
/*
 * Of a dead sandbox: kill what still runs in its control groups, and remove these. Without groups
 * nobody can tell what was its own. EBUSY after 200 ms: try again.
 */
int state_end_processes(const char *id, struct err *e);
