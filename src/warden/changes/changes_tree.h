/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uppers as changes.c walks them: a stack of open directories, each with its sorted names.
 *
 * What is in an upper is made by the sandbox, and may change while it is walked. A name is
 * only ever resolved as one component below a descriptor, without following a link; what
 * vanishes between listing and looking is not there. Only the CHANGES_OPEN innermost
 * directories keep their descriptors, the ones above are opened again on the way back: by
 * "..", and where that is no longer the same directory, by name from the top.
 *
 * The names of all directories on the stack share two arenas with a ceiling. A directory
 * that cannot be listed (not readable, beyond a ceiling, too deep) is counted in `unlisted`.
 */
#pragma once

#include "base/buf.h"
#include "warden/changes/changes.h"
#include "warden/changes/changes_index.h"

enum {
	CHANGES_OPEN = 64,
	/* Bytes read to compare copy-ups with what is in the lower: of one file, in one walk. */
	CHANGES_COMPARE_FILE = 1 << 20,
	CHANGES_COMPARE_WALK = 64 << 20,
};

struct changes_name {
	uint64_t key; /* the first eight bytes, big endian: decides most comparisons */
	uint32_t off;
	uint16_t len;
	uint8_t type; /* DT_* */
};

enum changes_content { CONTENT_UNKNOWN, CONTENT_SAME, CONTENT_OTHER };

enum changes_lower { LOWER_UNKNOWN, LOWER_OPEN, LOWER_NONE };

struct changes_frame {
	int fd, lower_fd;
	bool dead; /* no longer where it was: what is left of it counts as gone */
	enum changes_lower lower;
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	uint32_t flags;	      /* CHANGES_* of the directory */
	uint32_t next, first; /* of `names`, up to the next frame's first */
	uint32_t text;	      /* length of the text arena below this frame */
	uint32_t path, name;  /* length of the path with and without this directory's name */
	/* For changes_merge.c: the directory in the report, and the differences that it is. */
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
	uint64_t compared; /* bytes */
};

/* An entry of the innermost directory. Its name lies in the arena: not past the next push. */
struct changes_node {
	struct changes_rec rec;
	struct str name;
	uint32_t dev_major, dev_minor;
	int fd; /* of a directory that can be opened; owned */
};

void changes_tree_init(struct changes_tree *t);
void changes_tree_done(struct changes_tree *t);
DEFINE_AUTO(struct changes_tree, changes_tree_done)

/* Begin with an upper: fills the node of its root. 0 or -errno. */
int changes_tree_root(struct changes_tree *t, const struct changes_root *root,
		      struct changes_node *ret);
/* The next name of the innermost directory, or STR_NONE. */
struct str changes_tree_peek(const struct changes_tree *t);
/*
 * Step over the next name and look at it. `old` (or NULL) is what the index has under that
 * name. 1, 0 where it has vanished, or -errno.
 */
int changes_tree_look(struct changes_tree *t, const struct changes_rec *old,
		      struct changes_node *ret);
/* Go into a directory; takes node->fd. 1, 0 where it cannot be listed, or -errno. */
int changes_tree_push(struct changes_tree *t, struct changes_node *node);
void changes_tree_pop(struct changes_tree *t);

/* Look up a name of the innermost directory in the lower. 1, 0 where it is not there. */
int changes_tree_lower(struct changes_tree *t, struct str name, struct changes_rec *ret);
/* Open it there, for reading; the descriptor is the caller's. FD_NONE. */
int changes_tree_open_lower(struct changes_tree *t, struct str name);
/*
 * Compare what a file or link holds with what the one in the lower does. UNKNOWN for other
 * types, and where it cannot be read or a ceiling is passed.
 */
enum changes_content changes_tree_compare(struct changes_tree *t, const struct changes_node *node);
/* The same for a name in two directories; *compared: bytes that were read in this walk. */
enum changes_content changes_compare_at(int upper_dir, int lower_dir, const char *name,
					uint32_t mode, uint64_t size, uint64_t *compared);
/* True for a directory that overlayfs copied up from some lower layer. */
bool changes_tree_is_copy(const struct changes_tree *t, const struct changes_node *node);
/* The ctime of the innermost directory as it is now. */
uint64_t changes_tree_ctime(const struct changes_tree *t);

static inline struct changes_frame *changes_tree_top(const struct changes_tree *t)
{
	return &t->frames[t->nframes - 1];
}
