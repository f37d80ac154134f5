/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a directory's files when it was frozen (freeze.h). A file with an equal key has not
 * changed since: a write, a rename or a new attribute changes its ctime, which no process can set
 * back.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct frozen_key {
	uint64_t dev, ino, size, mtime_ns;
	uint64_t ctime_ns;
	uint32_t mode, uid, gid;
	uint32_t nlink; /* 0: a later change might go unnoticed */
};

struct frozen_index {
	struct buf records;
	uint64_t n;
	uint32_t *slots; /* hash table: offset of each path's record plus 1; only for an index that
			    was read */
	uint64_t nslots;
};

#define FROZEN_INDEX_INIT \
	{ \
		.records = BUF_INIT(1u << 30) \
	}

void frozen_index_done(struct frozen_index *x);
DEFINE_AUTO(struct frozen_index, frozen_index_done)

/* Add a record; path is relative to the directory, "" for itself. 0 or -errno. */
int frozen_index_add(struct frozen_index *x, const char *path, const struct frozen_key *key);
/* Write it to dirfd/name, and read it back. -EBADMSG for a file that we would not write. */
int frozen_index_write(const struct frozen_index *x, int dirfd, const char *name);
int frozen_index_read(struct frozen_index *x, int dirfd, const char *name);
int frozen_index_read_fd(struct frozen_index *x, int fd);
/* True if the index was read, and has this path with this key. */
bool frozen_index_has(const struct frozen_index *x, const char *path, const struct frozen_key *key);
/* The key of a path, in *ret; false if there is none. */
bool frozen_index_find(const struct frozen_index *x, const char *path, struct frozen_key *ret);
