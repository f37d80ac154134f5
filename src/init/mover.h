/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of init that prepares directories for a rename (pure.h). The command's rename(2) waits at
 * its seccomp listener; afterwards the kernel does it. So nothing here decides what is allowed: at
 * worst a directory is copied up needlessly.
 *
 * The mover looks up both parents with the rights of the command, and does nothing if the command
 * may not write there. A second process does the work. It shares descriptors and one page of memory
 * with the first, which undoes a half-done move if the second is killed.
 */
#pragma once

#include "base/limits.h"
#include "wire/frame.h"

struct move_order {
	int tid; /* waiting thread, pid as seen inside */
	int dirfd[2];
	unsigned flags;
	char path[2][LIMIT_PATH]; /* from, to */
};

/* 0 or -EBADMSG. */
int move_order_parse(struct move_order *o, struct str body);
/*
 * Open the stage directory that the mover has just made. A process that may change the parent can
 * put its own directory there: -EBUSY if others can use it. For tests.
 */
int mover_open_stage(int parent, const char *name);
/* Run in a child of init; exits with the errno, or 0. */
void mover_run(const struct move_order *o) __attribute__((noreturn));
