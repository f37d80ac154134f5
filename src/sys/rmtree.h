/* SPDX-License-Identifier: Apache-2.0 */
/* Removing a tree by descriptor, without following links. */
#pragma once

/* Remove name below dirfd and all that is in it. 0 where it is not there, else -errno. */
int rmtree_at(int dirfd, const char *name);
