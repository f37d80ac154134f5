/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's mounts. They answer two questions about a lower: is anything mounted below it, and
 * would it show a given directory? A path alone cannot answer the second, because a bind mount
 * gives the same files another name. So places are also compared by device and path within the file
 * system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct host_mount {
	const char *dev;   /* major:minor */
	const char *root;  /* path within the file system that is mounted here */
	const char *point; /* mount point */
};

struct host_mounts {
	char *text; /* owned; the strings above point into it */
	struct host_mount *v;
	size_t n;
};

int host_mounts_read(struct host_mounts *ret, struct err *e);
/* Owns text, in the format of /proc/PID/mountinfo; skips malformed lines. */
int host_mounts_parse(char *text, struct host_mounts *ret, struct err *e);
void host_mounts_done(struct host_mounts *m);
DEFINE_AUTO(struct host_mounts, host_mounts_done)

/* All paths absolute, without links and trailing slashes. */
bool host_mounts_below(const struct host_mounts *m, const char *dir);
bool host_mounts_shows(const struct host_mounts *m, const char *outer, const char *inner);
