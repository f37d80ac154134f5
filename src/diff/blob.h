/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a file or link, as git would store it. Text is kept in memory and so cannot
 * change. Binary or large content is read again from its file when needed, and must not have
 * changed.
 */
#pragma once

#include "base/sha1.h"
#include "diff/compare.h"

struct blob {
	bool none;	 /* no such file on this side */
	bool binary;	 /* contains a NUL byte, or is too large to compare by lines */
	struct buf data; /* text, or a small binary file */
	int fd;		 /* owned; of a large file */
	uint64_t size;
	char oid[SHA1_HEX]; /* valid after blob_hash() */
};

/*
 * Loads one side of an entry that is a file or link there; otherwise, and for `absent`, an empty
 * blob.
 */
int blob_load(const struct diff *d, const struct diff_entry *en, bool new, struct blob *ret);
/* Computes oid, which reads everything. Returns 0 or -errno. */
int blob_hash(struct blob *b);
void blob_done(struct blob *b);
DEFINE_AUTO(struct blob, blob_done)
/* Passes all bytes to fn in pieces. 0, -ESTALE if they changed since blob_hash(), or -errno. */
int blob_each(const struct blob *b, int (*fn)(void *ctx, const void *p, size_t n), void *ctx);
