/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make a directory of an overlay renameable.
 *
 * Overlayfs renames a directory only if no layer below the upper has a part of it; all others are
 * EXDEV. pure_make() gives a directory that state in place, children first:
 *   1 copy up every file, by opening it for writing; nothing changes that anyone can see;
 *   2 make a new directory in the stage, close the old one (mode 0), move all entries over, and
 *     rename the new directory to the name of the old one, which is empty by then.
 * Files keep their inodes, so programs that have them open or run them go on. While the entries of
 * one directory move, nobody else can use the directory: without that, a program that opens or
 * creates a file by its path in that moment would write to another file of the same name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The directory that is half moved. It lies in shared memory, so that the parent can undo it. */
struct pure_half {
	volatile bool open; /* entries may lie in `to` */
	int from, to;
	struct stat was; /* `from`, before it was touched */
	char name[16];	 /* of `to` in the stage */
};

struct pure {
	int stage;	      /* a directory in the same mount; "e" in it holds a directory */
	uint64_t mount;	      /* everything must lie in this mount */
	uint64_t deadline_ns; /* of clock_mono_ns() */
	unsigned left;	      /* entries that may still be looked at */
	struct pure_half *half;
};

enum { PURE_ENTRIES = 200000, PURE_DEPTH = 128 };

/* Make the entries that pure_make() needs in the stage, or remove them. */
int pure_stage(int stage);
void pure_unstage(int stage);
/* 0: it can be renamed. Else -errno, and its tree is as it was. */
int pure_make(struct pure *p, int parent, const char *name);
/* Put back what a killed pure_make() left behind. 0 or -errno. */
int pure_undo(struct pure_half *half, int stage);
/* The number of the mount that holds fd. 0 or -errno. */
int pure_mount_of(int fd, uint64_t *ret);
