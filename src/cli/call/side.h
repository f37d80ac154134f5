/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local side of a copy: a child process at the other end of a pipe, so that it packs or
 * unpacks while this process is busy with the call. It reports once, when it is done: what
 * it counted and the error it met.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "image/tree.h"

/* What the child reports; both ends are the same program, so it travels as it is. */
struct side_result {
	int rc;
	struct tree_counts n;
	struct err e;
};

struct side {
	pid_t pid;
	int fd; /* our end of the data; the caller may take it */
	int result_fd;
	bool has_result;
	struct side_result result;
};

/* fd is the child's end of the data. Returns 0, or -1 with e. */
typedef int side_fn(void *ctx, int fd, struct tree_counts *n, struct err *e);

/* writes: the child writes and we read; else the other way round. */
int side_start(struct side *s, side_fn *fn, void *ctx, bool writes, struct err *e);
/*
 * Close our end, wait, and return what fn returned. An error of EPIPE or ENODATA (see
 * side_is_echo) says only that the other side broke off.
 */
int side_wait(struct side *s, struct tree_counts *n, struct err *e);
bool side_is_echo(const struct err *e);
/* The data has ended: whether the child has written all of it. A void * for struct client_io. */
bool side_is_whole(void *side);

/* Copy one file's bytes from in_fd to the pipe; ends early when the reader is gone. */
int side_relay_bytes(int in_fd, int out_fd, uint64_t max_bytes, const struct tree_progress *p,
		     struct tree_counts *n, struct err *e);
/*
 * Copy a tar stream between two sandboxes. Nothing of an entry is passed on whose top is not
 * `want` (NULL: any): the source must not choose what is written in the destination.
 */
int side_relay_tar(int in_fd, int out_fd, const char *want, uint64_t max_bytes,
		   const struct tree_progress *p, struct tree_counts *n, struct err *e);
