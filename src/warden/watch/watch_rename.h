/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames. Overlayfs refuses to rename a directory of a lower layer (EXDEV). So every rename of a
 * command waits at its listener. If it concerns a directory of an overlay, the warden orders init
 * to make the directory renameable (init/mover.h), one order at a time. Then the kernel does the
 * rename.
 *
 * The warden answers CONTINUE, or ENOTEMPTY if the target is a directory that is not empty. A
 * sandbox that changes files meanwhile, or a lying init, can at worst make the rename fail with
 * EXDEV, or cause a needless copy of a directory.
 */
#pragma once

#include <linux/seccomp.h>

#include "warden/watch/watch_ends.h"

struct rename_order;

bool rename_is(const struct seccomp_notif *n);
/* A rename has arrived in w->bufs from the listener of c. */
void rename_begin(struct watch_call *c);
/* The call is about to be freed. */
void rename_forget(struct watch_call *c);
void rename_done(struct watch *w);
