/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sandbox started from. The lowest layer of a --dir is the host's directory itself, and
 * the host may have changed a file there since. Then the layer does not hold any more what the
 * sandbox started from, and a patch against it would undo what the host did.
 *
 * From its first snapshot on the lowest layer is a frozen copy, which nobody changes. But the host
 * may have changed a file before it was copied, and after the sandbox had changed it.
 *
 * Where a copy of the file was kept (base/N/HASH, see warden/changes/changes_base.h), that copy is
 * the old side. Otherwise the entry is marked, and patch_write() leaves it out.
 */
#pragma once

#include "diff/compare.h"

struct diff_start {
	/* Layers from this one on are the host's, and files that changed later are others now. */
	int old_host, new_host;
	uint64_t old_ns, new_ns;
	/*
	 * Where the old side is a frozen copy: what the host's file was when it was copied. False
	 * if that is not known. NULL: it is the host's directory itself.
	 */
	bool (*was)(void *ctx, const char *path, struct stack_node *n);
	void *was_ctx;
	/* As in struct apply_rules; NULL where nothing is remembered. */
	bool (*is_ours)(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			uint64_t size);
	int (*was_ours)(void *ctx, const char *path);
	/* The kept copy of a file, or -errno. */
	int (*open_copy)(void *ctx, const char *path);
	void *ctx;
};

/* Sets from_copy and host_changed of each entry. s is borrowed as long as d lives. */
void diff_find_start(struct diff *d, const struct diff_start *s);
