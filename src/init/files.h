/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations, done inside by a child of init with the identity of the sandbox's user. So the
 * sandbox's own permissions apply to path resolution. Each returns the child's exit status: 0, or 1
 * after one line on stderr with the path and the reason.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * Write a regular file to fd 1, from offset on, at most length bytes; nothing if it ends earlier.
 * Refuses fifos, devices and directories without blocking.
 */
int files_read(const char *path, uint64_t offset, uint64_t length);
/*
 * Write fd 0 to a file; creates or replaces it and makes parent directories. mode: for a new file.
 * metadata: K=V, NULL-terminated, or NULL: the file's only attributes of FILE_ENTRY_XATTR.
 */
int files_write(const char *path, mode_t mode, char *const *metadata);
/* Until its last step, a file that is written has a name by which a watcher knows it. */
enum files_temp { FILES_NOT_TEMP, FILES_TEMP_NEW, FILES_TEMP_OVER /* it replaces another */ };
enum files_temp files_temp_kind(const char *name);
/* Write the file or tree at path as a tar stream to fd 1; names are relative to path's parent. */
int files_read_tree(const char *path);
/*
 * Extract a tar stream from fd 0. If path is a directory, entries go into it under their own names.
 * Otherwise path's parent must exist, and the stream's top entry becomes path (like cp -r).
 */
int files_write_tree(const char *path);
