/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a directory that other processes may be changing. The copy itself is never written again,
 * so a later copy of the same directory can share its files: unchanged files are linked, not
 * copied.
 *
 * Kept: content, holes, hard links, symbolic links, fifos, sockets, modes, times, extended
 * attributes. As root also owners and devices. Blocks are shared if the file system can (reflink).
 * Like an overlay, the copy leaves out what is mounted below the directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/freeze/frozen_index.h"

/* Names with a special outcome: how many, the first, and why. */
struct freeze_names {
	uint64_t n;
	int err;
	char first[256];
};

struct freeze_result {
	uint64_t entries, copied, linked, bytes; /* bytes: of the copied files */
	struct freeze_names left_out;		 /* unreadable, or this user may not create them */
	struct freeze_names unsteady;		 /* changed during every attempt to copy them */
	char where[256]; /* after a failure: the path relative to the directory */
};

struct freeze {
	int from_fd;
	bool privileged; /* keep owners; then swap `owner` and `user` (ns/userns.h) */
	uint32_t owner, user;
	/* An earlier copy of the same directory and its index; FD_NONE and NULL: none. */
	int last_fd;
	const struct frozen_index *last;
	int workers; /* threads; 1: only the caller's */
};

/*
 * Call first, in a process that only copies: afterwards it can read files that are closed to their
 * owner, and creates files with exactly the requested modes. 0 or -errno.
 */
int freeze_begin(void);
/* 1: nothing has changed since the earlier copy. 0: something may have changed. -errno. */
int freeze_is_same(const struct freeze *f);
/*
 * Fill the empty directory to_fd, and describe it in *index. 0, or -errno with ret->where set,
 * leaving a partial copy for the caller to remove.
 */
int freeze_copy(const struct freeze *f, int to_fd, struct frozen_index *index,
		struct freeze_result *ret);
