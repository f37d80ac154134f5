/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of trees in which subvolumes of btrfs lie. */
#pragma once

/*
 * As rmtree_at() (sys/rmtree.h), but subvolumes go as a whole: `name` itself, and what lies at
 * most two levels below it. What they hold is not looked at.
 */
int voltree_remove(int dirfd, const char *name);
