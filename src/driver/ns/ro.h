/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-only mounts (MOUNT_RO).
 *
 * A bind shows the host's own inodes. Even read-only, a sandbox could connect to the host's
 * sockets, write to its pipes and lock its files. So a user's read-only mount is the lower layer of
 * an overlay without an upper. The overlay has its own inodes: sockets and pipes lead nowhere, and
 * a lock stays inside.
 *
 * - A directory is an overlay. Each host mount below it is an overlay of its own.
 * - A file is bound out of an overlay over its directory. If the kernel refuses that overlay, or
 *   the file is itself a mount point, the sandbox gets a copy of up to 16 MiB.
 * - A template directory with other file systems below it: as root, like a user's directory, with
 *   the template's mask above it; rootless, a bind.
 */
#pragma once

#include "driver/ns/launch.h"

/* The detached mount of entry i, or -errno with t->what. */
int ro_new(struct tree *t, int i);
/* After attaching it: show the host's mounts below it. */
int ro_below(struct tree *t, int i);
