/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walk the uppers for changes.c: a stack of open directories, each with its sorted names.
 *
 * The sandbox makes the content of an upper and may change it during the walk. So a name is only
 * ever resolved as one component below a descriptor, without following links. A name that vanishes
 * between listing and stat counts as missing. Only the CHANGES_OPEN innermost directories keep
 * their descriptors. The walk reopens the others on the way back: by "..", and if that is no longer
 * the same directory, by name from the top.
 *
 * The names of all directories on the stack share two arenas with a ceiling. `unlisted` counts
 * directories that cannot be listed (not readable, beyond a ceiling, too deep).
 */
#pragma once

#include "base/buf.h"
#include "warden/changes/changes.h"
#include "warden/changes/changes_index.h"

enum {
	CHANGES_OPEN = 64,
	/* Most bytes to read for comparing copy-ups with the lower: per file, per walk. */
	CHANGES_COMPARE_FILE = 1 << 20,
	CHANGES_COMPARE_WALK = 64 << 20,
};

struct changes_name {
	uint64_t key; /* first eight bytes, big endian: decides most comparisons */
	uint32_t off;
	uint16_t len;
	uint8_t type; /* DT_* */
};

enum changes_content { CONTENT_UNKNOWN, CONTENT_SAME, CONTENT_OTHER };

enum changes_lower { LOWER_UNKNOWN, LOWER_OPEN, LOWER_NONE };

struct changes_frame {
	int fd, lower_fd;
	bool dead; /* the directory has moved: its remaining entries count as gone */
	enum changes_lower lower;
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	uint32_t flags;	      /* CHANGES_* flags of the directory */
	uint32_t next, first; /* indexes into `names`, up to the next frame's first */
	uint32_t text;	      /* length of the text arena below this frame */
	uint32_t path, name;  /* length of the path with and without this directory's name */
	/* For changes_merge.c: the directory's number in the report, and its differences. */
	uint32_t node, gone, new;
};

struct changes_tree {
	struct changes_root root;
	struct changes_frame *frames;
	uint32_t nframes, cap_frames, lowest_open;
	struct changes_name *names;
	uint32_t nnames, cap_names;
	struct buf text, path; /* path: of the innermost directory, relative to the root */
	uint64_t unlisted;
	uint64_t compared; /* bytes read */
};

/* An entry of the innermost directory. Its name is in the arena and valid until the next push. */
struct changes_node {
	struct changes_rec rec;
	struct str name;
	uint32_t dev_major, dev_minor;
	int fd; /* of a directory that can be opened; owned */
};

void changes_tree_init(struct changes_tree *t);
void changes_tree_done(struct changes_tree *t);
DEFINE_AUTO(struct changes_tree, changes_tree_done)

/* Start with an upper: fills the node of its root. 0 or -errno. */
int changes_tree_root(struct changes_tree *t, const struct changes_root *root,
		      struct changes_node *ret);
/* The next name of the innermost directory, or STR_NONE. */
struct str changes_tree_peek(const struct changes_tree *t);
/*
 * Advance past the next name and stat it. `old` (or NULL): the index's record of that name. 1, 0 if
 * it has vanished, or -errno.
 */
int changes_tree_look(struct changes_tree *t, const struct changes_rec *old,
		      struct changes_node *ret);
/* Enter a directory; takes node->fd. 1, 0 if it cannot be listed, or -errno. */
int changes_tree_push(struct changes_tree *t, struct changes_node *node);
void changes_tree_pop(struct changes_tree *t);

/* Look up a name of the innermost directory in the lower. 1, or 0 if it is missing. */
int changes_tree_lower(struct changes_tree *t, struct str name, struct changes_rec *ret);
/* Open the name in the lower, for reading; the caller owns the descriptor. FD_NONE on failure. */
int changes_tree_open_lower(struct changes_tree *t, struct str name);
/*
 * Compare the content of a file or link with the lower's. UNKNOWN for other types, if it cannot be
 * read, or beyond a ceiling.
 */
enum changes_content changes_tree_compare(struct changes_tree *t, const struct changes_node *node);
/* The same for a name in two directories; *compared: bytes read in this walk. */
enum changes_content changes_compare_at(int upper_dir, int lower_dir, const char *name,
					uint32_t mode, uint64_t size, uint64_t *compared);
/* True for a directory that overlayfs copied up from a lower layer. */
bool changes_tree_is_copy(const struct changes_tree *t, const struct changes_node *node);
/* The current ctime of the innermost directory. */
uint64_t changes_tree_ctime(const struct changes_tree *t);

static inline struct changes_frame *changes_tree_top(const struct changes_tree *t)
{
	return &t->frames[t->nframes - 1];
}
