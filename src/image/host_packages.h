/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of /var that packages own. Their programs and configure scripts expect them, although
 * what the host keeps in them is hidden.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* True if a line of dpkg's lists names something below var that may be made; out: without '/'. */
bool host_packages_path(struct str line, char *out, size_t size);
/* Make those directories, empty. layer: has var already, and no link in it yet. */
int host_packages_make(int layer, struct err *e);
