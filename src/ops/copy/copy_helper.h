/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of a copy: a child process at the other end of a pipe, so that it packs or
 * unpacks while this process is busy with the call. It reports how far it is, and once, when it is
 * done, what it counted and the error it met. It prints nothing.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "image/tree.h"
#include "ops/cay.h"

/* What the child reports; both ends are the same program, so it travels as it is. */
struct copy_report {
	bool last; /* else it tells how far it is: only n */
	int rc;
	struct tree_counts n;
	struct err e;
};

struct copy_helper {
	struct cay *c;
	pid_t pid;
	int fd; /* our end of the data; the caller may take it */
	int report_fd;
	struct loop_io report_io;
	bool has_result;
	struct copy_report result;
};

/* Runs in the child. fd is the child's end of the data. Returns 0, or -1 with e. */
typedef int copy_helper_fn(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
			   struct err *e);

enum copy_way {
	COPY_WRITES, /* the child writes and we read */
	COPY_READS,  /* the other way round */
	/* So too, and what ends this process does not end the child: the data ends early then, and
	 * the child removes a file that is half written. */
	COPY_READS_ON,
};

/* c->progress hears of it while c->loop runs. */
int copy_helper_start(struct copy_helper *h, struct cay *c, copy_helper_fn *fn, void *ctx,
		      enum copy_way way, struct err *e);
/*
 * Close our end, wait, and return what fn returned. An error of EPIPE or ENODATA (see
 * copy_is_echo) says only that the other side broke off.
 */
int copy_helper_wait(struct copy_helper *h, struct tree_counts *n, struct err *e);
bool copy_is_echo(const struct err *e);
/* The data has ended: whether the child has written all of it. For struct file_call_spec. */
bool copy_helper_is_whole(void *helper);

/* Copy one file's bytes; ends early when the reader is gone. */
int copy_bytes(int in_fd, int out_fd, uint64_t max_bytes, const struct tree_progress *p,
	       struct tree_counts *n, struct err *e);
/*
 * Copy a tar stream between two sandboxes. Nothing of an entry is passed on whose top is not
 * `want` (NULL: any): the source must not choose what is written in the destination.
 */
int copy_tar(int in_fd, int out_fd, const char *want, uint64_t max_bytes,
	     const struct tree_progress *p, struct tree_counts *n, struct err *e);
