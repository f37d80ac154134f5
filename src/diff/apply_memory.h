/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox's directory remembers about a --dir: which files of the host cay apply wrote
 * (sandboxes/ID/applied), and what files held when the sandbox first changed them
 * (sandboxes/ID/base/N/HASH, saved by the warden), for merges.
 */
#pragma once

#include "base/buf.h"
#include "base/sha256.h"
#include "diff/apply.h"

struct apply_memory {
	int dir_fd; /* of the sandbox; owned */
	int mount;  /* number of the --dir among the mounts */
	struct applied {
		char *path;
		uint64_t ino, ctime_ns, size;
		bool restored; /* not written by us, but put back when a run was undone */
		bool merged; /* what we wrote holds changes of the host's that the sandbox lacks */
	} * v;		     /* later ones count */
	size_t n;
};

int apply_memory_load(struct apply_memory *m, int sandbox_fd, int mount, struct err *e);
void apply_memory_done(struct apply_memory *m);
DEFINE_AUTO(struct apply_memory, apply_memory_done)

/* For struct apply_rules. */
bool apply_memory_is_ours(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			  uint64_t size);
int apply_memory_was_ours(void *ctx, const char *path);
bool apply_memory_was_merged(void *ctx, const char *path);
int apply_memory_base(void *ctx, const char *path, struct buf *ret);
/* For struct diff_start: the same, opened; or -errno. */
int apply_memory_open_copy(void *ctx, const char *path);

/*
 * Files that we wrote and that the sandbox has removed since: overlayfs, which does not know
 * that they have come into being below it, has left no whiteout. Adds them to the difference.
 */
int apply_memory_add_deleted(struct apply_memory *m, const struct diff_scope *s, struct diff *d,
			     struct err *e);

/*
 * Remember what the steps of a have put below its directory. d: the difference that they are of;
 * NULL where that is not known any more.
 */
int apply_memory_add(struct apply_memory *m, const struct apply *a, const struct diff *d,
		     struct err *e);
/* For struct apply: what was moved and moved back has another ctime, and is what it was. */
int apply_memory_undone(void *ctx, const struct apply *a, struct err *e);
