/* SPDX-License-Identifier: Apache-2.0 */
/* Remove trees that contain btrfs subvolumes. */
#pragma once

/*
 * Like rmtree_at() (sys/files/rmtree.h), but deletes whole subvolumes: `name` itself and those up
 * to two levels below it, without reading their content.
 */
int voltree_remove(int dirfd, const char *name);
