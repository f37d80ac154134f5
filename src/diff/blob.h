/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file or link holds, as git would store it. Text is in memory and so cannot change
 * any more; what is binary or large is read again from its file where it is needed, and must
 * be the same then.
 */
#pragma once

#include "base/sha1.h"
#include "diff/compare.h"

struct blob {
	bool none;	 /* there is no such file on this side */
	bool binary;	 /* holds a NUL byte, or is too large for lines */
	struct buf data; /* text, or a small binary file */
	int fd;		 /* owned; of a large one */
	uint64_t size;
	char oid[SHA1_HEX]; /* once blob_hash() was called */
};

/* Either side of an entry that is a file or link there; else, and for `absent`, an empty one. */
int blob_load(const struct diff *d, const struct diff_entry *en, bool new, struct blob *ret);
/* Fill in oid, for which all of it is read. 0 or -errno. */
int blob_hash(struct blob *b);
void blob_done(struct blob *b);
DEFINE_AUTO(struct blob, blob_done)
/* All bytes in pieces. 0, -ESTALE where they are not those that were hashed, or -errno. */
int blob_each(const struct blob *b, int (*fn)(void *ctx, const void *p, size_t n), void *ctx);
