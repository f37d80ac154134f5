/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files between the host and sandboxes. Each end in a sandbox is a call there, run by the sandbox's
 * user; trees travel as tar streams, the one file of a stream as bytes. What happens on the host
 * happens in a child (copy_helper.h), below a descriptor of the destination, since the stream comes
 * from inside.
 *
 * This process must not die of SIGPIPE: it writes to pipes of its children.
 */
#pragma once

#include "image/tree.h"
#include "ops/cay.h"

enum copy_kind {
	COPY_HOST,    /* a file or directory with all it holds */
	COPY_SANDBOX, /* the same in a sandbox */
	COPY_STREAM,  /* the bytes of one file */
};

struct copy_place {
	enum copy_kind kind;
	const char *sandbox; /* id, name or prefix of an id */
	/*
	 * Of the host, or inside. A directory as the destination receives the copy; any other path
	 * becomes the copy; a slash at its end says that it must be a directory. "dir/." as the
	 * source is what the directory holds.
	 */
	const char *path;
	int fd; /* of a stream; borrowed */
};

/* At least one of both is in a sandbox; to or from a stream the other must be. */
struct copy_spec {
	struct copy_place from, to;
	const char *user;   /* inside; NULL: the sandbox's */
	uint64_t max_bytes; /* with more the copy fails; holes count; 0: no limit */
};

struct copy_result {
	struct tree_counts n; /* n.unreadable: left out, and all the rest was copied */
	struct warnings warnings;
};

/*
 * c->progress hears how many bytes and files are done. A file that was not copied completely is
 * not left behind.
 */
int op_copy(struct cay *c, const struct copy_spec *spec, struct copy_result *ret, struct err *e);
