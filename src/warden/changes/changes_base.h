/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The original content of host files that the sandbox changed, kept for merges: base/N/HASH in the
 * sandbox's directory. HASH is the hash of the path. Kept only for a --dir, only for small files,
 * and only if the host has not changed the file since the sandbox was made.
 */
#pragma once

#include <stdint.h>

struct changes_tree;
struct str;

struct changes_base {
	int dirfd;	  /* the sandbox's directory; borrowed */
	int mount;	  /* N */
	uint64_t made_ns; /* clock_real_ns() when the sandbox was made */
	uint32_t files;
	uint64_t bytes;
};

/* Save the lower's version of a name in the innermost directory. Ignores errors. */
void changes_base_save(struct changes_tree *t, struct str name);
