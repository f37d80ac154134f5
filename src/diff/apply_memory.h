/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox's directory remembers about a --dir, for merges: which host files cay apply wrote
 * (sandboxes/ID/applied), and the content of files when the sandbox first changed them
 * (sandboxes/ID/base/N/HASH, saved by the warden).
 */
#pragma once

#include "base/buf.h"
#include "base/sha256.h"
#include "diff/apply.h"

struct apply_memory {
	int dir_fd; /* of the sandbox's directory; owned */
	int mount;  /* number of the --dir among the mounts */
	struct applied {
		char *path;
		uint64_t ino, ctime_ns, size;
		bool restored; /* not written, but put back when a run was undone */
		bool merged;   /* the file we wrote contains host changes that the sandbox lacks */
	} * v;		       /* later records override earlier ones */
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
/* For struct diff_start: opens the kept copy; or -errno. */
int apply_memory_open_copy(void *ctx, const char *path);

/*
 * Adds files to the difference that cay apply wrote and the sandbox has removed since. Overlayfs
 * made no whiteout for them, because it does not know that they appeared in the lower directory.
 */
int apply_memory_add_deleted(struct apply_memory *m, const struct diff_scope *s, struct diff *d,
			     struct err *e);

/* Remember what the steps of a wrote to its directory. d: their difference, or NULL if unknown. */
int apply_memory_add(struct apply_memory *m, const struct apply *a, const struct diff *d,
		     struct err *e);
/* For struct apply: a file that was moved and moved back has a new ctime, but is unchanged. */
int apply_memory_undone(void *ctx, const struct apply *a, struct err *e);
