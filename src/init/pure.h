/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make a directory of an overlay renameable.
 *
 * Overlayfs renames a directory only if no layer below the upper has a part of it; otherwise it
 * returns EXDEV. pure_make() brings a directory into that state in place, children first:
 *   1 copy up every file, by opening it for writing; this changes nothing that is visible;
 *   2 make a new directory in the stage, close the old one (mode 0), move all entries over, and
 *     rename the new directory to the name of the old one, which is empty by then.
 * Files keep their inodes, so programs that have them open or run them continue. While the entries
 * of one directory move, no other process can use the directory. Otherwise a program that opens or
 * creates a file by its path at that moment would write to another file of the same name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The half-moved directory. It is in shared memory, so that the parent can undo the move. */
struct pure_half {
	volatile bool open; /* `to` may contain entries */
	int from, to;
	struct stat was; /* `from`, before any change */
	char name[16];	 /* name of `to` in the stage */
};

struct pure {
	int stage;	      /* a directory in the same mount; its "e" is not empty */
	uint64_t mount;	      /* everything must be in this mount */
	uint64_t deadline_ns; /* clock_mono_ns() limit */
	unsigned left;	      /* number of entries that may still be processed */
	int caller;	      /* waiting thread; if it is gone, the work ends */
	struct pure_half *half;
};

enum { PURE_ENTRIES = 200000, PURE_DEPTH = 128 };

/* Make the entries that pure_make() needs in the stage, or remove them. */
int pure_stage(int stage);
void pure_unstage(int stage);
/* 0: it can be renamed. Otherwise -errno, and its tree is unchanged. */
int pure_make(struct pure *p, int parent, const char *name);
/* Undo what a killed pure_make() left. 0 or -errno. */
int pure_undo(struct pure_half *half, int stage);
/* The number of the mount that holds fd. 0 or -errno. */
int pure_mount_of(int fd, uint64_t *ret);
