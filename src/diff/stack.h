/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of layers as overlayfs shows it, read from outside: layers by descriptor, topmost first,
 * and lookups across all of them. Whiteouts and opaque directories count as in the mount, so only
 * in the attributes of its own kind: a sandbox can write attributes of the other kind.
 *
 * Layers contain what a sandbox wrote. This code follows no symbolic link, never leaves a layer,
 * and opens only directories and regular files; names and sizes may change at any time.
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
	uint32_t owner, user; /* corresponding ids: owner on disk, user inside */
};

struct stack {
	struct stack_layer *layers; /* topmost first */
	int n;
	bool userxattr; /* user.overlay.*, not trusted.overlay.* */
};

/* The layers that make up a merged directory. */
struct stack_mask {
	uint64_t bits[STACK_LAYERS / 64];
};

/* The result of a lookup. */
struct stack_node {
	mode_t mode;
	uint64_t size;
	uint32_t uid, gid; /* inside */
	uint32_t rdev_major, rdev_minor;
	dev_t dev;
	ino_t ino;
	uint64_t ctime_ns, mtime_ns, nlink;
	int layer;		/* layer that has it */
	struct stack_mask mask; /* of a directory */
};

/* A merged directory. */
struct stack_dir {
	struct stack_part {
		int fd, layer;
		bool xwhiteouts; /* whiteouts may be empty files with an attribute */
	} * parts;		 /* topmost first */
	int n;
	bool denied; /* the directory of one layer could not be read */
};

/* Adds a layer below the existing ones; always takes layer->fd. Returns 0 or -errno. */
int stack_add(struct stack *s, struct stack_layer layer);
void stack_done(struct stack *s);
DEFINE_AUTO(struct stack, stack_done)
bool stack_same_layer(const struct stack_layer *a, const struct stack_layer *b);

/* Opens a path of any length below fd; "" is fd itself. The descriptor or -errno. */
int stack_open_at(int fd, const char *path, int flags);
/* Opens a regular file of one layer for reading. The descriptor or -errno. */
int stack_open_file(const struct stack *s, int layer, const char *path);

int stack_root(const struct stack *s, struct stack_node *ret);
int stack_dir_open(const struct stack *s, const char *path, const struct stack_mask *mask,
		   struct stack_dir *ret);
void stack_dir_done(struct stack_dir *d);
DEFINE_AUTO(struct stack_dir, stack_dir_done)
/* 1, 0 if the name does not exist, or -errno. */
int stack_look(const struct stack *s, const struct stack_dir *d, const char *name,
	       struct stack_node *ret);
/* stack_look() for a path of several names. */
int stack_find(const struct stack *s, const char *path, struct stack_node *ret);

/* Names of directory entries, each once, sorted. */
struct stack_names {
	struct buf text;
	uint32_t *at;
	size_t n, cap;
};

void stack_names_done(struct stack_names *n);
DEFINE_AUTO(struct stack_names, stack_names_done)
/* Adds the names of one directory. 0 or -errno; -E2BIG above LIMIT_WALK_NAMES. */
int stack_names_add(struct stack_names *n, int dirfd);
void stack_names_sort(struct stack_names *n);
static inline const char *stack_name(const struct stack_names *n, size_t i)
{
	return n->text.data + n->at[i];
}

/* Appends the file's own extended attributes, in order. 0 or -errno. */
int stack_xattrs(const struct stack *s, int dirfd, const char *name, struct buf *out);
/*
 * Reads the stored handle of the file that this one was copied up from. Returns its length; 0 if
 * the file system has no handles; -ENODATA if it was not copied up.
 */
int stack_origin(const struct stack *s, int dirfd, const char *name, void *out, size_t size);
