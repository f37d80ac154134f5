/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is shown read-only (MOUNT_RO).
 *
 * A bind shows the host's own inodes: its sockets could be connected to and its pipes written to,
 * read-only or not. So a directory of the user's is the lower layer of an overlay without an
 * upper: sockets and pipes are then others of the same name, and nobody listens there. What is
 * mounted below it gets an overlay of its own. Single files, and directories of the system that
 * have other file systems below them, are bound.
 */
#pragma once

#include "driver/ns/launch.h"

/* The detached mount of i, or -errno with t->what. */
int ro_new(struct tree *t, int i);
/* Once that is attached: what the host has mounted below. */
int ro_below(struct tree *t, int i);
