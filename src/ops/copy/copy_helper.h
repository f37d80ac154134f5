/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of a copy: a child process at the other end of a pipe. The child packs or unpacks
 * while this process serves the call. It reports progress, and at the end its counts and its error.
 * It prints nothing.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "image/tree.h"
#include "ops/cay.h"

/* A report of the child. Both ends are the same program, so the struct is sent as it is. */
struct copy_report {
	bool last; /* the final report; else progress: only n is valid */
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
	COPY_READS,  /* we write and the child reads */
	/*
	 * Like COPY_READS, but a signal that ends this process does not end the child: the data
	 * then ends early, and the child removes a partly written file.
	 */
	COPY_READS_ON,
};

/* Reports progress to c->progress while c->loop runs. */
int copy_helper_start(struct copy_helper *h, struct cay *c, copy_helper_fn *fn, void *ctx,
		      enum copy_way way, struct err *e);
/*
 * Close our end, wait, and return what fn returned. An error EPIPE or ENODATA (see copy_is_echo)
 * only says that the other side broke off.
 */
int copy_helper_wait(struct copy_helper *h, struct tree_counts *n, struct err *e);
bool copy_is_echo(const struct err *e);
/* At the end of the data: true if the child has written all of it. For struct file_call_spec. */
bool copy_helper_is_whole(void *helper);

/* Copy one file's bytes. Ends early if the reader is gone. */
int copy_bytes(int in_fd, int out_fd, uint64_t max_bytes, const struct tree_progress *p,
	       struct tree_counts *n, struct err *e);
/*
 * Copy a tar stream between two sandboxes. Refuses an entry whose top is not `want` (NULL: any)
 * before passing any of it on: the source must not choose what is written in the destination.
 */
int copy_tar(int in_fd, int out_fd, const char *want, uint64_t max_bytes,
	     const struct tree_progress *p, struct tree_counts *n, struct err *e);
