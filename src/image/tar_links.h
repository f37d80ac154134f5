/* SPDX-License-Identifier: Apache-2.0 */
/* Files with several names, by inode: the name of each that was packed first. Bounded. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

struct tar_links {
	struct tar_link *slots; /* open addressing; size is a power of two */
	size_t size, used;
	struct buf names;
};

void tar_links_init(struct tar_links *t);
void tar_links_done(struct tar_links *t);

/* The recorded name of the file, valid until the next tar_links_note(); or NULL. */
const char *tar_links_find(const struct tar_links *t, dev_t dev, ino_t ino);
/* Best effort: if the table is full, the file's other names are packed as copies. */
void tar_links_note(struct tar_links *t, dev_t dev, ino_t ino, const char *name);
