/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines what the sandbox started from. The lowest layer of a --dir is the host directory
 * itself, and the host may have changed a file there since. The layer then no longer holds what the
 * sandbox started from, and a patch against it would undo the host's change.
 *
 * From the first snapshot on, the lowest layer is a frozen copy, which never changes. But the host
 * may have changed a file before the copy and after the sandbox had changed it.
 *
 * If a copy of the file was kept (base/N/HASH, see warden/changes/changes_base.h), that copy is the
 * old side. Otherwise the entry is marked, and patch_write() leaves it out.
 */
#pragma once

#include "diff/compare.h"

struct diff_start {
	/*
	 * Layers from these indices on are the host's. A file there that changed after old_ns or
	 * new_ns differs from the start.
	 */
	int old_host, new_host;
	uint64_t old_ns, new_ns;
	/*
	 * If the old side is a frozen copy: the state of the host file when it was copied. False if
	 * unknown. NULL: the old side is the host directory itself.
	 */
	bool (*was)(void *ctx, const char *path, struct stack_node *n);
	void *was_ctx;
	/* As in struct apply_rules; NULL if there is no memory. */
	bool (*is_ours)(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			uint64_t size);
	int (*was_ours)(void *ctx, const char *path);
	/* Opens the kept copy of a file, or -errno. */
	int (*open_copy)(void *ctx, const char *path);
	void *ctx;
};

/* Sets from_copy and host_changed of each entry. Borrows s as long as d lives. */
void diff_find_start(struct diff *d, const struct diff_start *s);
