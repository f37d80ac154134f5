/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: its path, its content, and which sandboxes are alive.
 *
 *   catalog.db            the catalog (store/catalog.h)
 *   locks/ID              the warden of ID holds it (flock) for its whole life. It has a record if
 *                         the sandbox has no row in the catalog (store/locks.h). For a snapshot of
 *                         kind SNAPSHOT_FORK, the forking process holds it
 *   uids                  one byte per range of uids, locked by the warden that has it
 *   sandboxes/ID/         sock, trace.jsonl and its further segments (base/trace_name.h), policy
 *                         (compiled, as the gateway enforces it), upper/N, work/N.G, stage,
 *                         op (lock of snapshots and rollbacks), next,
 *                         old (during a switch)
 *   layers/ID/N           sealed layers (store/snapshots.h)
 *   ended/ID.jsonl        traces of ended sandboxes, with their segments: the latest
 *                         LIMIT_ENDED, or CAY_KEEP_ENDED (up to an eighth more until trimmed),
 *                         for LIMIT_ENDED_DAYS, or CAY_KEEP_DAYS (0: any age)
 *   ended/ID.end.json     the end of a sandbox that could not write it itself (store/end_note.h)
 *   templates/            layers
 *   applying/NONCE        hash of the journal of a running cay apply (diff/apply_note.c)
 *   storage, storage.img  the storage, if set up (store/storage.h)
 *   ready/                lists of ready sandboxes, if there are pools (store/ready.h)
 *
 * A sandbox is alive while its lock is held. The creator takes the lock, then makes the directory,
 * then the catalog row, and then starts the warden, which inherits the lock's descriptor. So
 * anything without a held lock belongs to something dead.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum { ID_MAX = 20, ID_LEN = 12, ID_SIZE = ID_MAX + 1 };
/* The state directory and the catalog never have these mode bits, because they hold tokens. */
enum { STATE_OTHERS = 077 };

struct state {
	char dir[3072]; /* absolute */
	int fd;		/* of it */
};

/* Sets only s->dir, as state_open() would; makes nothing. INVALID if there is no place for it. */
int state_locate(struct state *s, struct err *e);
/*
 * CAY_STATE, else /var/lib/cay for root, else $XDG_STATE_HOME/cay or ~/.local/state/cay. Makes it
 * 0700 with its subdirectories. NOT_ALLOWED if another user owns it or it has a bit of
 * STATE_OTHERS.
 */
int state_open(struct state *s, struct err *e);
void state_done(struct state *s);
/*
 * Close a file of the state directory to others, or create it (0600). Never opens an existing file:
 * closing its descriptor would drop SQLite's locks. 0 or -errno.
 */
int state_private_file(const struct state *s, const char *name, bool create);

/* [a-z0-9]{8,20} */
bool state_id_ok(const char *id);
/* [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62} */
bool state_name_ok(const char *name);
/* ID_LEN random characters, the first a letter. */
int state_id_new(char out[ID_SIZE], struct err *e);

/*
 * Take the lock of a new or dead sandbox. CONFLICT if it is held, after about 20 ms: a process that
 * only checks (state_is_alive) has released it by then. The caller owns the fd.
 */
int state_lock(const struct state *s, const char *id, int *ret_fd, struct err *e);
/*
 * The same for a new sandbox, with a record in the file (store/locks.h) before it becomes visible.
 */
int state_lock_new(const struct state *s, const char *id, struct str record, int *ret_fd,
		   struct err *e);
bool state_is_alive(const struct state *s, const char *id);
/* The same, by the descriptor of the state directory. */
bool state_lock_is_held(int state_fd, const char *id);
/* For a lock with nothing else on disk: removes its file and closes fd. */
void state_unlock(const struct state *s, const char *id, int fd);
/*
 * Take a uid slot below `slots` that no running sandbox has: a lock on one byte of the file `uids`,
 * held while ret_fd (and what inherits it) is open. A dead sandbox in the catalog may still have
 * it. LIMIT if all are taken.
 */
int state_take_slot(const struct state *s, int slots, int *ret_slot, int *ret_fd, struct err *e);
/* Open the directory of a sandbox; NOT_FOUND. The caller owns the fd. */
int state_sandbox_open(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* Move the trace of an ended sandbox, and the note of its end, to ended/. 1, 0 if it has none, or
 * -errno. */
int state_save_trace(const struct state *s, const char *id);
/* Then remove those above CAY_KEEP_ENDED and older than CAY_KEEP_DAYS. 0 or -errno. */
int state_trim_ended(const struct state *s);
/* True, with the id, for a file of an ended sandbox in ended/. */
bool state_is_ended_file(const char *name, char ret_id[ID_SIZE]);
/*
 * Remove a dead sandbox's files: move its trace to ended/ (and trim older ones), delete the rest
 * and its control groups (cay-ID), the lock last. The caller holds the lock in lock_fd, which is
 * always closed. Idempotent: after a failure the rest remains, with its path in the error, and the
 * call can be repeated. Delete the catalog row afterwards, not before: it reserves the uid slot of
 * these files.
 */
int state_remove(const struct state *s, const char *id, int lock_fd, struct err *e);
/*
 * For a dead sandbox: kill what still runs in its control groups, and remove the groups. Without
 * groups its processes cannot be identified. EBUSY after 200 ms: retry.
 */
int state_end_processes(const char *id, struct err *e);
