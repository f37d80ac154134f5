/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: scratch directories, hand-made tar blocks, and comparing trees. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A new directory, removed with its content when the process that made it exits. */
const char *scratch(void);
/* An absolute path below the scratch directory; a ring of 16 static buffers. */
const char *in_scratch(const char *rel);

void make_file(const char *path, const char *text, unsigned mode);
/* Content, terminated; the test fails if the file is missing. Static buffer. */
const char *content(const char *path);
bool exists(const char *path);

/* One raw header. The checksum is always right. */
struct raw {
	const char *name;
	char type; /* 0 for '0' */
	const char *link;
	unsigned long long size;
	unsigned mode; /* 0 for 0644 */
};
void raw_header(struct buf *b, struct raw h);
/* Header and content with padding. */
void raw_entry(struct buf *b, struct raw h, const char *data, size_t n);
void raw_text(struct buf *b, const char *name, const char *text);
/* A pax header of one record. */
void raw_pax(struct buf *b, char type, const char *key, const char *value);
void raw_end(struct buf *b);
/* Correct the checksum of the block at `at`. */
void raw_sum(struct buf *b, size_t at);

/* A descriptor at the start of an unlinked file with this content. */
int fd_of(const struct buf *b);

/* Everything about a tree but inode numbers and the times of its top, as sorted text. */
char *tree_text(const char *path);
