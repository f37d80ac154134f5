/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that gets its name when it is complete. Until then it has no name (O_TMPFILE), so a killed
 * writer leaves nothing behind. On file systems without O_TMPFILE (overlayfs before Linux 6.1, NFS)
 * it has a name, which is removed if the writer fails, but not if the writer is killed.
 *
 * Blocks of zeros become holes, so a sparse file stays sparse.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct newfile {
	int fd;
	bool named;
	bool hole; /* the last block was skipped */
	uint64_t at;
};

#define NEWFILE_INIT \
	{ \
		.fd = -1 \
	}

/*
 * Mode 0600. named: name it at once, which is cheaper, if the whole content is available. 0 or
 * -errno; -EEXIST if the name exists.
 */
int newfile_open(struct newfile *f, int dirfd, const char *name, bool named);
int newfile_write(struct newfile *f, struct str data);
/*
 * Call after the last write: sets the size if the file ends in a hole. Set times and mode after it.
 */
int newfile_end(struct newfile *f);
/* Name the file. 0, or -errno; after -EEXIST call again. The descriptor stays open. */
int newfile_commit(struct newfile *f, int dirfd, const char *name);
/* Remove the unfinished file. */
void newfile_drop(struct newfile *f, int dirfd, const char *name);
