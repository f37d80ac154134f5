/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/layer.h"

#include <errno.h>
#include <stdio.h>

#include "base/limits.h"
#include "sys/resolve.h"

int layer_open(const struct layer_roots *r, const char *path, int flags)
{
	char below[LIMIT_PATH];
	int fd;

	if (snprintf(below, sizeof below, "layers/%s", path) >= (int)sizeof below)
		return -ENAMETOOLONG;
	fd = resolve_beneath(r->state_fd, below, flags, 0);
	return fd == -ENOENT && r->pool_fd >= 0 ? resolve_beneath(r->pool_fd, below, flags, 0) : fd;
}
