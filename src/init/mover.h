/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of init that makes directories ready for a rename that a command waits in (pure.h). The
 * command's rename(2) stands still at its seccomp listener; afterwards the kernel does it. So
 * nothing here decides what is allowed: at worst a directory is copied up for nothing.
 *
 * The mover looks up both parents with the rights of the command, and does nothing where the
 * command may not write. A second process does the work and shares descriptors and one page of
 * memory with the first, which undoes a half move if the second is killed.
 */
#pragma once

#include "base/limits.h"
#include "wire/frame.h"

struct move_order {
	int tid; /* the thread that waits, as seen inside */
	int dirfd[2];
	unsigned flags;
	char path[2][LIMIT_PATH]; /* from, to */
};

/* 0 or -EBADMSG. */
int move_order_parse(struct move_order *o, struct str body);
/*
 * The stage that we have made. Whoever may change the parent can put another directory in its
 * place, and would be at home in it: -EBUSY for one that others can use. For tests.
 */
int mover_open_stage(int parent, const char *name);
/* In a child of init; ends it with the errno, or 0. */
void mover_run(const struct move_order *o) __attribute__((noreturn));
