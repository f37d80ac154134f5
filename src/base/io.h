/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes on descriptors. All return 0 or a count, or -errno. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Write all n bytes; for blocking descriptors. */
int io_write_all(int fd, const void *p, size_t n);
/* Read exactly n bytes; -ENODATA if the file ends first. */
int io_read_exact(int fd, void *p, size_t n);
/* Append the rest of the file to b; -E2BIG if it exceeds b's ceiling. */
int io_read_all(int fd, struct buf *b);
/* Open name below dirfd and append its content. */
int io_read_file(int dirfd, const char *name, struct buf *b);
/* Write a small existing file, such as one in /proc, in one write. */
int io_write_file(int dirfd, const char *name, const char *text);
/* Write tmp, then rename it to name. A crash in between never leaves a partial `name`. */
int io_replace_file(int dirfd, const char *tmp, const char *name, struct str text);
int io_set_nonblock(int fd, bool on);
/* Like mkdir, but an existing directory is no error. */
int io_mkdir(int dirfd, const char *name, mode_t mode);
/* mkdir -p of an absolute or relative path; new directories get `mode`. */
int io_mkdir_all(const char *path, mode_t mode);
