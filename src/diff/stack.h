/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of layers as overlayfs shows it, read from outside: layers by descriptor, topmost
 * first, and what a name means in all of them together. Whiteouts and opaque directories are
 * honoured as the mount would, so only in the attributes of its own kind: a sandbox can write
 * those of the other.
 *
 * Layers hold what a sandbox wrote. Nothing here follows a symbolic link, leaves a layer, or
 * opens anything but directories and regular files; names and sizes may change at any time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { STACK_LAYERS = 512 };

struct stack_layer {
	int fd; /* owned */
	dev_t dev;
	ino_t ino;
	uint32_t owner, user; /* ids on disk and inside that stand for each other */
};

struct stack {
	struct stack_layer *layers; /* topmost first */
	int n;
	bool userxattr; /* user.overlay.*, not trusted.overlay.* */
};

/* Which layers make up a merged directory. */
struct stack_mask {
	uint64_t bits[STACK_LAYERS / 64];
};

/* What a name means. */
struct stack_node {
	mode_t mode;
	uint64_t size;
	uint32_t uid, gid; /* inside */
	uint32_t rdev_major, rdev_minor;
	dev_t dev;
	ino_t ino;
	uint64_t ctime_ns, mtime_ns, nlink;
	int layer;		/* where it is found */
	struct stack_mask mask; /* of a directory */
};

/* A merged directory. */
struct stack_dir {
	struct stack_part {
		int fd, layer;
		bool xwhiteouts; /* whiteouts may be empty files with an attribute */
	} * parts;		 /* topmost first */
	int n;
	bool denied; /* a layer's directory could not be read */
};

/* Put a layer below those that are there; takes layer->fd in any case. 0 or -errno. */
int stack_add(struct stack *s, struct stack_layer layer);
void stack_done(struct stack *s);
DEFINE_AUTO(struct stack, stack_done)
bool stack_same_layer(const struct stack_layer *a, const struct stack_layer *b);

/* Open below fd, however long the path; "" is fd itself. The descriptor or -errno. */
int stack_open_at(int fd, const char *path, int flags);
/* A regular file of one layer, for reading. The descriptor or -errno. */
int stack_open_file(const struct stack *s, int layer, const char *path);

int stack_root(const struct stack *s, struct stack_node *ret);
int stack_dir_open(const struct stack *s, const char *path, const struct stack_mask *mask,
		   struct stack_dir *ret);
void stack_dir_done(struct stack_dir *d);
DEFINE_AUTO(struct stack_dir, stack_dir_done)
/* 1, 0 where there is no such name, or -errno. */
int stack_look(const struct stack *s, const struct stack_dir *d, const char *name,
	       struct stack_node *ret);
/* stack_look() for a path of several names. */
int stack_find(const struct stack *s, const char *path, struct stack_node *ret);

/* The names of directories, each once, sorted. */
struct stack_names {
	struct buf text;
	uint32_t *at;
	size_t n, cap;
};

void stack_names_done(struct stack_names *n);
DEFINE_AUTO(struct stack_names, stack_names_done)
/* Add those of one directory. 0 or -errno; -E2BIG above LIMIT_WALK_NAMES. */
int stack_names_add(struct stack_names *n, int dirfd);
void stack_names_sort(struct stack_names *n);
static inline const char *stack_name(const struct stack_names *n, size_t i)
{
	return n->text.data + n->at[i];
}

/* Append the extended attributes that are the file's own, in order. 0 or -errno. */
int stack_xattrs(const struct stack *s, int dirfd, const char *name, struct buf *out);
/*
 * What overlayfs has kept of the file that this one was copied up from: the length of its
 * handle, 0 where the file system has none, or -ENODATA where it was not copied up.
 */
int stack_origin(const struct stack *s, int dirfd, const char *name, void *out, size_t size);
