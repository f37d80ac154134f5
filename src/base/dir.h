/* SPDX-License-Identifier: Apache-2.0 */
/* Open directories for reading without following symbolic links. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

static inline void dir_free(DIR *d)
{
	(void)closedir(d);
}
DEFINE_AUTO_PTR(DIR, dir_free)

/* On failure: NULL, and errno is set. */
static inline DIR *dir_open_at(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = FD_NONE;
	return d;
}

static inline bool dir_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* False if the directory cannot be read. */
static inline bool dir_is_empty(int parent, const char *name)
{
	auto_done(dir_free) DIR *d = dir_open_at(parent, name);
	bool empty = d != NULL;

	for (struct dirent *x = d ? readdir(d) : NULL; x && empty; x = readdir(d))
		empty = dir_is_dots(x->d_name);
	return empty;
}
