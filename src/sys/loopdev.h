/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a block device. */
#pragma once

#include <stddef.h>

/*
 * The file as a loop device that goes away with its last user. Into `path`, its name; keep the
 * returned descriptor open until something else uses it. -ENOENT, -ENXIO: no such devices here.
 */
int loopdev_attach(int file_fd, char *path, size_t size);
/*
 * The same, but the device that has the file already, where there is one: a file system must not
 * be mounted through two of them. Whoever may race for it holds a lock of their own.
 */
int loopdev_share(int file_fd, char *path, size_t size);
