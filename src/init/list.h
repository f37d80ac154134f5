/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a directory, and what changes there: operations of a child of init, with the rights of
 * the sandbox's user (as init/files.h). Their exit status is 0, LIST_MISSING, LIST_WRONG_TYPE, or
 * 1; after a failure there is one line on stderr.
 */
#pragma once

#include "base/buf.h"

enum { LIST_MISSING = 44, LIST_WRONG_TYPE = 20 };

/*
 * Entries of what is below a directory, at most `depth` levels deep, in no order; depth "0": the
 * entry of the path itself, of any type.
 */
int list_run(const char *path, const char *depth);
/* Changes of the entries of a directory, until stdin ends. options: deep, entries. */
int watch_run(const char *path, char *const *options);

/* The texts of one entry (wire/file_entry.h). -ENOENT, or another -errno. */
int list_put(struct buf *out, const char *path);
/* One line on stderr. Returns the exit status for the error. */
int list_fail(const char *path, int errnum);
