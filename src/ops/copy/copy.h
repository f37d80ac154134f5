/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies files between the host and sandboxes. Each end in a sandbox is a call there, run as the
 * sandbox's user. Trees travel as tar streams; a single file of a stream travels as plain bytes.
 * The host side runs in a child (copy_helper.h), below a descriptor of the destination, because the
 * stream comes from inside.
 *
 * The process must ignore SIGPIPE: it writes to pipes of its children.
 */
#pragma once

#include "image/tree.h"
#include "ops/cay.h"

enum copy_kind {
	COPY_HOST,    /* a file, or a directory with its contents */
	COPY_SANDBOX, /* the same in a sandbox */
	COPY_STREAM,  /* the bytes of one file */
};

struct copy_place {
	enum copy_kind kind;
	const char *sandbox; /* id, name or prefix of an id */
	/*
	 * On the host, or inside. An existing directory as destination receives the copy; any other
	 * path becomes the copy; a trailing slash requires a directory. "dir/." as source means the
	 * contents of dir.
	 */
	const char *path;
	int fd; /* of a stream; borrowed */
};

/* At least one end is in a sandbox. If one end is a stream, the other must be in a sandbox. */
struct copy_spec {
	struct copy_place from, to;
	const char *user;   /* user inside; NULL: the sandbox's */
	uint64_t max_bytes; /* the copy fails beyond this size; holes count; 0: no limit */
};

struct copy_result {
	struct tree_counts n; /* n.unreadable: files left out; everything else was copied */
	struct warnings warnings;
};

/* Reports bytes and files done to c->progress. Leaves no partially copied file behind. */
int op_copy(struct cay *c, const struct copy_spec *spec, struct copy_result *ret, struct err *e);
