/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a directory looked like when it was frozen (freeze.h). A file of which all of
 * this is the same has not been changed since: writing to it, renaming it or setting an attribute
 * gives it another ctime, which nobody can set back.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct frozen_key {
	uint64_t dev, ino, size, mtime_ns;
	uint64_t ctime_ns;
	uint32_t mode, uid, gid;
	uint32_t nlink; /* 0: a later change might not show */
};

struct frozen_index {
	struct buf records;
	uint64_t n;
	uint32_t *slots; /* where the record of a path begins, plus 1, by hash; of one that was read
			  */
	uint64_t nslots;
};

#define FROZEN_INDEX_INIT \
	{ \
		.records = BUF_INIT(1u << 30) \
	}

void frozen_index_done(struct frozen_index *x);
DEFINE_AUTO(struct frozen_index, frozen_index_done)

/* Add one; path is relative to the directory, "" for itself. 0 or -errno. */
int frozen_index_add(struct frozen_index *x, const char *path, const struct frozen_key *key);
/* Write it to dirfd/name, and read it back. -EBADMSG for a file that we would not write. */
int frozen_index_write(const struct frozen_index *x, int dirfd, const char *name);
int frozen_index_read(struct frozen_index *x, int dirfd, const char *name);
int frozen_index_read_fd(struct frozen_index *x, int fd);
/* True if the index was read, and has this path with this key. */
bool frozen_index_has(const struct frozen_index *x, const char *path, const struct frozen_key *key);
/* The key of a path, in *ret; false if there is none. */
bool frozen_index_find(const struct frozen_index *x, const char *path, struct frozen_key *ret);
