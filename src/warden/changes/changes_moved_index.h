/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of a report, by name, by inode, and by the attributes that a copy-up keeps. */
#pragma once

#include "warden/changes/changes_report.h"

/* Extra data of each difference: its directory, and its links in the hash chains. */
struct moved_side {
	uint32_t by_name, by_key, by_inode; /* by_inode: for a new directory, by mode and mtime */
	uint32_t node;			    /* for a directory, its number in the report */
	uint32_t sibling;		    /* the next name that is gone from the same directory */
	uint32_t now;			    /* for a deleted name, the new name with its inode */
	bool taken;			    /* for a directory: its inode already has a match */
};

struct moved_index {
	struct changes_report *p;
	uint32_t size; /* slots of each table */
	uint32_t *names, *keys, *inodes, *empties;
	struct moved_side *side;
	uint32_t cap_side;
	uint32_t *first; /* by directory: the first name that is gone from it */
	uint32_t ndirs;
};

/* Indexes all differences of the report. 0 or -ENOMEM. */
int moved_index_init(struct moved_index *m, struct changes_report *p);
void moved_index_done(struct moved_index *m);
/* Index one more difference. 0 or -ENOMEM. */
int moved_index_add(struct moved_index *m, uint32_t i);

/* A name in a directory, new or gone; or CHANGES_NONE. */
uint32_t moved_find_name(const struct moved_index *m, uint32_t dir, const char *name, size_t n,
			 bool gone);
/* The deleted name that had the inode of this new one. */
uint32_t moved_find_inode(const struct moved_index *m, const struct changes_diff *new);
/* New names with this mode, size, mtime and name: the first, and the next. */
uint32_t moved_first_key(const struct moved_index *m, uint32_t mode, uint64_t size,
			 uint64_t mtime_ns, const char *name, size_t n);
/* The first new directory with this mode and mtime, without new entries; the next is by_inode. */
uint32_t moved_first_dir(const struct moved_index *m, uint32_t mode, uint64_t mtime_ns);

static inline const char *moved_name(const struct moved_index *m, const struct changes_diff *d)
{
	return m->p->text.data + d->name; /* not terminated */
}

static inline bool moved_has_name(const struct moved_index *m, const struct changes_diff *d,
				  const char *name, size_t n)
{
	return d->name_len == n && memcmp(moved_name(m, d), name, n) == 0;
}

static inline bool moved_is_gone(const struct changes_diff *d)
{
	return d->kind <= CHANGES_GONE_LOWER;
}
