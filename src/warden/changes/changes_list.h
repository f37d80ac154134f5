/* SPDX-License-Identifier: Apache-2.0 */
/* The names of one directory, for changes_tree.c. */
#pragma once

#include "warden/changes/changes_tree.h"

/* Append the names to t->names, sorted. 0, -ENOMEM, or -errno with nothing appended. */
int changes_list(struct changes_tree *t, int fd);
