/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a block device. */
#pragma once

#include <stddef.h>

/*
 * The file as a loop device that goes away with its last user. Into `path`, its name; keep the
 * returned descriptor open until something else uses it. -ENOENT, -ENXIO: no such devices here.
 */
int loopdev_attach(int file_fd, char *path, size_t size);
