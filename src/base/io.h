/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes on descriptors. All return 0 or a count, or -errno. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Write all n bytes; for blocking descriptors. */
int io_write_all(int fd, const void *p, size_t n);
/* Read exactly n bytes; -ENODATA when the end comes first. */
int io_read_exact(int fd, void *p, size_t n);
/* Append all that is left to b; -E2BIG when b's ceiling comes first. */
int io_read_all(int fd, struct buf *b);
/* Open name below dirfd and append its content. */
int io_read_file(int dirfd, const char *name, struct buf *b);
/* Write a small existing file, such as one of /proc, in one write. */
int io_write_file(int dirfd, const char *name, const char *text);
/* Write tmp, then rename it to name: whoever dies in between leaves no part of a file as name. */
int io_replace_file(int dirfd, const char *tmp, const char *name, struct str text);
int io_set_nonblock(int fd, bool on);
/* mkdir that is content with a directory that is there already. */
int io_mkdir(int dirfd, const char *name, mode_t mode);
/* mkdir -p of an absolute or relative path; new directories get `mode`. */
int io_mkdir_all(const char *path, mode_t mode);
