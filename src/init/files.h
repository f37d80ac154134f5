/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations, done inside by a child of init that already has the identity of the
 * sandbox's user: path resolution happens where the sandbox's own rights apply.
 * Each returns the exit status of the child: 0, or 1 after one line on stderr that
 * names the path and the reason.
 */
#pragma once

#include <sys/types.h>

/* A regular file to fd 1. Fifos, devices and directories are refused without blocking. */
int files_read(const char *path);
/* fd 0 to a file, made or replaced; parent directories are made. mode: for a new file. */
int files_write(const char *path, mode_t mode);
/* The file or tree at path as a tar stream to fd 1; names are relative to path's parent. */
int files_read_tree(const char *path);
/*
 * A tar stream from fd 0. Where path is a directory: into it, each entry by its own name.
 * Else path's parent must exist, and the stream's top entry becomes path (as cp -r does).
 */
int files_write_tree(const char *path);
