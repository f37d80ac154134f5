/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a layer: entries below an open root, with the mode and owner that a sandbox sees. No other
 * process uses the new tree, so its paths are plain names. Only root can change owners; otherwise
 * everything belongs to the caller.
 */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"

struct layer_attr {
	mode_t mode; /* permission bits; the umask is ignored */
	uid_t uid;
	gid_t gid;
	const struct timespec *mtime; /* of files; NULL: now */
};

int layer_dir(int root, const char *path, const struct layer_attr *a, struct err *e);
int layer_file(int root, const char *path, struct str content, const struct layer_attr *a,
	       struct err *e);
int layer_link(int root, const char *path, const char *target, struct err *e);
