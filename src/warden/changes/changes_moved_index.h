/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of a report by name, by inode, and by what a copy-up leaves as it was. */
#pragma once

#include "warden/changes/changes_report.h"

/* What is known of each difference beside the report: chains of equal hashes, and its directory. */
struct moved_side {
	uint32_t by_name, by_key, by_inode; /* by_inode: of a new directory, by mode and mtime */
	uint32_t node;			    /* of a directory, its number in the report */
	uint32_t sibling;		    /* the next name that is gone from the same directory */
	uint32_t now;			    /* of a name that is gone, the new one with its inode */
	bool taken;			    /* a directory whose inode has a match */
};

struct moved_index {
	struct changes_report *p;
	uint32_t size; /* of each table */
	uint32_t *names, *keys, *inodes, *empties;
	struct moved_side *side;
	uint32_t cap_side;
	uint32_t *first; /* by directory: the first name that is gone from it */
	uint32_t ndirs;
};

/* Enters all differences that the report has. 0 or -ENOMEM. */
int moved_index_init(struct moved_index *m, struct changes_report *p);
void moved_index_done(struct moved_index *m);
/* Enter one more. 0 or -ENOMEM. */
int moved_index_add(struct moved_index *m, uint32_t i);

/* A name of a directory, new there or gone from there; CHANGES_NONE. */
uint32_t moved_find_name(const struct moved_index *m, uint32_t dir, const char *name, size_t n,
			 bool gone);
/* The name that is gone and had the inode of a new one. */
uint32_t moved_find_inode(const struct moved_index *m, const struct changes_diff *new);
/* Which new names of this mode, size, mtime and name there are: the first, and the next. */
uint32_t moved_first_key(const struct moved_index *m, uint32_t mode, uint64_t size,
			 uint64_t mtime_ns, const char *name, size_t n);
/* A new directory without new entries, of this mode and mtime; the first, next is by_inode. */
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
