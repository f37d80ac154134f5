/* SPDX-License-Identifier: Apache-2.0 */
#include "store/layer_open.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sys/files/resolve.h"

static int open_in_both(const struct layer_roots *r, const char *below, int flags)
{
	int fd = resolve_beneath(r->state_fd, below, flags, 0);

	return fd == -ENOENT && r->storage_fd >= 0 ? resolve_beneath(r->storage_fd, below, flags, 0)
						   : fd;
}

/* True if the layer of this path exists at all. */
static bool has_whole(const struct layer_roots *r, char *below)
{
	char *end = strchr(below + sizeof "layers/" - 1, '/');
	auto_close int fd = FD_NONE;

	if (!end)
		return true;
	*end = '\0';
	fd = open_in_both(r, below, O_PATH | O_DIRECTORY);
	return fd != -ENOENT;
}

int layer_open(const struct layer_roots *r, const char *path, int flags)
{
	char below[LIMIT_PATH];
	int fd;

	if (snprintf(below, sizeof below, "layers/%s", path) >= (int)sizeof below)
		return -ENAMETOOLONG;
	fd = open_in_both(r, below, flags);
	return fd == -ENOENT && !has_whole(r, below) ? -LAYER_GONE : fd;
}

int layer_open_start(const struct layer_roots *r, const char *id, int i, int flags)
{
	char path[64];

	if (!layer_is_start(id))
		return -ENOENT;
	(void)snprintf(path, sizeof path, "%s/%d", id, i);
	return layer_open(r, path, flags);
}
