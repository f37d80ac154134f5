/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a directory that somebody else may be changing. The copy itself is never written
 * again, so another copy of the same directory can share its files: those that were not changed
 * since are linked, not copied.
 *
 * Kept: content, holes, hard links, symbolic links, fifos, sockets, modes, times, extended
 * attributes. As root also owners and devices. Blocks are shared where the file system can
 * (reflink). As an overlay does, the copy leaves out what is mounted below the directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/freeze/frozen_index.h"

/* Names that went differently than the rest: how many, the first, and why. */
struct freeze_names {
	uint64_t n;
	int err;
	char first[256];
};

struct freeze_result {
	uint64_t entries, copied, linked, bytes; /* bytes: of the files that were copied */
	struct freeze_names left_out;		 /* may not be read, or not be made by this user */
	struct freeze_names unsteady;		 /* changed each time while they were copied */
	char where[256];			 /* of a failure: the path below the directory */
};

struct freeze {
	int from_fd;
	bool privileged; /* keep owners; then `owner` and `user` swap places (ns/userns.h) */
	uint32_t owner, user;
	/* An earlier copy of the same directory, with its index; FD_NONE and NULL: none. */
	int last_fd;
	const struct frozen_index *last;
	int workers; /* threads; 1: none but the caller's */
};

/*
 * Before anything else in a process that does nothing but this: it sees files that are closed to
 * their owner, and makes files with the modes that it asks for. 0 or -errno.
 */
int freeze_begin(void);
/* 1: nothing has changed since the earlier copy. 0: something may have. -errno. */
int freeze_is_same(const struct freeze *f);
/*
 * Fill the empty directory to_fd, and describe it in *index. 0, or -errno with ret->where set,
 * leaving a partial copy for the caller to remove.
 */
int freeze_copy(const struct freeze *f, int to_fd, struct frozen_index *index,
		struct freeze_result *ret);
