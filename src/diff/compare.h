/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two stacks of layers. Layers at the bottom of both stacks are read only where
 * one side covers them. So comparing a sandbox with its start takes time proportional to its
 * changes. File times and hard links do not count.
 */
#pragma once

#include "base/err.h"
#include "diff/stack.h"

enum diff_kind {
	DIFF_ADDED,
	DIFF_DELETED,
	DIFF_CHANGED, /* content, mode or metadata, as the flags say */
	DIFF_TYPE,    /* the file type changed */
	DIFF_RENAMED, /* also changed, if the flags say so */
};

struct diff_entry {
	enum diff_kind kind;
	char *path;		    /* relative to the root of the stacks, without a leading '/' */
	char *old_path;		    /* of a renamed entry; else NULL */
	struct stack_node old, new; /* mode 0: none */
	bool content, mode, owner, xattr;
	bool from_copy;	   /* the old content is a kept copy (start.h) */
	bool host_changed; /* the host file is not what the sandbox started from */
	bool unread;	   /* content could not be compared and counts as changed */
	bool implied;	   /* moved only because its directory was renamed */
	int percent;	   /* similarity of a renamed file */
};

struct diff_start;

struct diff {
	const struct stack *old, *new;	/* borrowed */
	const struct diff_start *start; /* set by diff_find_start(); borrowed */
	struct diff_entry *v;
	size_t n, cap;
	size_t sorted;	 /* number of sorted entries, from the first on */
	uint64_t unread; /* directories and files that could not be read */
	char *unread_first;
};

struct diff_scope {
	const char *const *paths; /* only these and everything below; none: all */
	int npaths;
	const char *const *skip; /* exclude these and everything below */
	int nskip;
	bool renames;
};

/* Sorted by path. The caller releases d on failure too. */
int diff_compare(const struct stack *old, const struct stack *new, const struct diff_scope *scope,
		 struct diff *ret, struct err *e);
void diff_done(struct diff *d);
DEFINE_AUTO(struct diff, diff_done)

/*
 * Adds a file as deleted if the lower layers have it and no upper layer mentions it, unless the
 * difference already has it. Returns 0 or -errno; sort afterwards.
 */
int diff_add_deleted(struct diff *d, const char *path);
void diff_sort(struct diff *d);
/* The entry of this path, among the sorted entries; or NULL. */
const struct diff_entry *diff_find(const struct diff *d, const char *path);
/*
 * True if the difference adds a name to this directory (with its slash; empty: the top) that a
 * case-insensitive file system takes for this lower-case name.
 */
bool diff_has_alias(const struct diff *d, struct str dir, const char *name);

/* Pairs deleted with added files: rename.c. Returns 0 or -errno. */
int diff_find_renames(struct diff *d);
/* Then pairs directories: rename_dirs.c. The difference must be sorted. Returns 0 or -errno. */
int diff_find_moved_dirs(struct diff *d);

/* The path of an entry before the change. */
static inline const char *diff_old_path(const struct diff_entry *en)
{
	return en->old_path ? en->old_path : en->path;
}
/* True if the rename of its directory already describes it completely. */
static inline bool diff_is_implied(const struct diff_entry *en)
{
	return en->implied && !en->host_changed && !en->from_copy && !en->unread;
}
/* Opens a file's content on one side; the descriptor or -errno. */
int diff_open_old(const struct diff *d, const struct diff_entry *en);
int diff_open_new(const struct diff *d, const struct diff_entry *en);
/* Append a link's target. 0 or -errno. */
int diff_read_link(const struct stack *s, const struct stack_node *n, const char *path,
		   struct buf *out);
