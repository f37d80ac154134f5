/* SPDX-License-Identifier: Apache-2.0 */
/* Files as block devices. */
#pragma once

#include <stddef.h>

/*
 * Attach the file to a loop device that disappears with its last user. Writes the device's path to
 * `path`. Keep the returned descriptor open until something else uses the device. -ENOENT, -ENXIO:
 * no loop devices here.
 */
int loopdev_attach(int file_fd, char *path, size_t size);
/*
 * The same, but reuse the device that already has the file: a file system must not be mounted
 * through two devices. Callers that may race hold their own lock.
 */
int loopdev_share(int file_fd, char *path, size_t size);
