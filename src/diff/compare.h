/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two stacks of layers. Layers that both have below everything else are
 * looked at only where one side covers them, so comparing a sandbox with what it started from
 * takes time by what it changed. Times of files do not count, and neither do hard links.
 */
#pragma once

#include "base/err.h"
#include "diff/stack.h"

enum diff_kind {
	DIFF_ADDED,
	DIFF_DELETED,
	DIFF_CHANGED, /* content, mode or metadata, as the flags say */
	DIFF_TYPE,    /* another kind of file */
	DIFF_RENAMED, /* and changed, where the flags say so */
};

struct diff_entry {
	enum diff_kind kind;
	char *path;		    /* below the root of the stacks, without a first '/' */
	char *old_path;		    /* of one that was renamed; else NULL */
	struct stack_node old, new; /* mode 0: none */
	bool content, mode, owner, xattr;
	bool from_copy;	   /* the old content is a kept copy: start.h */
	bool host_changed; /* the host's file is not what the sandbox started from */
	bool unread;	   /* content could not be compared and counts as changed */
	bool implied;	   /* it only came along with its directory, which was renamed */
	int percent;	   /* of one that was renamed: how similar */
};

struct diff_start;

struct diff {
	const struct stack *old, *new;	/* borrowed */
	const struct diff_start *start; /* set by diff_find_start(); borrowed */
	struct diff_entry *v;
	size_t n, cap;
	size_t sorted;	 /* so many, from the first on */
	uint64_t unread; /* directories and files that could not be read */
	char *unread_first;
};

struct diff_scope {
	const char *const *paths; /* only these and what lies below; none: all */
	int npaths;
	const char *const *skip; /* not these, nor what lies below */
	int nskip;
	bool renames;
};

/* Sorted by path. d is to be released on failure too. */
int diff_compare(const struct stack *old, const struct stack *new, const struct diff_scope *scope,
		 struct diff *ret, struct err *e);
void diff_done(struct diff *d);
DEFINE_AUTO(struct diff, diff_done)

/*
 * Add a file as deleted that the layers below have, and of which those above say nothing. Not
 * where the difference has it already. 0 or -errno; sort afterwards.
 */
int diff_add_deleted(struct diff *d, const char *path);
void diff_sort(struct diff *d);
/* The entry of this path, as far as the difference is sorted; NULL: there is none. */
const struct diff_entry *diff_find(const struct diff *d, const char *path);
/*
 * Whether something arrives in this directory (with its slash; empty: at the top) under a name that
 * a file system which ignores case takes for this one, in lower case.
 */
bool diff_has_alias(const struct diff *d, struct str dir, const char *name);

/* Pair what was deleted with what was added: rename.c. 0 or -errno. */
int diff_find_renames(struct diff *d);
/* Behind that, directories: rename_dirs.c. The difference is sorted. 0 or -errno. */
int diff_find_moved_dirs(struct diff *d);

/* What an entry is called before the change. */
static inline const char *diff_old_path(const struct diff_entry *en)
{
	return en->old_path ? en->old_path : en->path;
}
/* The rename of its directory says all that there is to say about it. */
static inline bool diff_is_implied(const struct diff_entry *en)
{
	return en->implied && !en->host_changed && !en->from_copy && !en->unread;
}
/* A file's content of either side; the descriptor or -errno. */
int diff_open_old(const struct diff *d, const struct diff_entry *en);
int diff_open_new(const struct diff *d, const struct diff_entry *en);
/* Append a link's target. 0 or -errno. */
int diff_read_link(const struct stack *s, const struct stack_node *n, const char *path,
		   struct buf *out);
