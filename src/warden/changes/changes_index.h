/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of changes.c: one record per entry of the uppers, in walk order (depth first, the names
 * of a directory sorted bytewise, a directory before its entries). It is read and written as a
 * stream. While a walk finds no difference to the index, nothing is written. At the first
 * difference the writer starts a new index with a copy of all records before it.
 *
 * An index of up to CHANGES_INDEX_CHUNK bytes stays in memory, in a block of exactly its size. Most
 * sandboxes never have more, and creating a file costs many times more than their whole walk. A
 * longer index is a private file that ends with the sandbox: native byte order, no fsync.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
	CHANGES_WHITEOUT = 1,	/* marks a deleted name; all numbers but depth and mode are 0 */
	CHANGES_OPAQUE = 2,	/* directory: hides the lower's directory */
	CHANGES_XWHITEOUTS = 4, /* directory: may contain whiteouts marked by xattr */
};

struct changes_rec {
	uint64_t ino, btime_ns, ctime_ns, mtime_ns, size;
	uint32_t depth; /* 0: the root of an upper */
	uint32_t mode;	/* including the file type */
	uint32_t flags;
	uint16_t name_len, zero;
};

enum { CHANGES_INDEX_CHUNK = 32 * 1024 };

struct changes_index {
	int fd;	   /* FD_NONE: the index is `mem` */
	char *mem; /* NULL: empty */
	size_t len;
};

#define CHANGES_INDEX_INIT \
	{ \
		.fd = FD_NONE \
	}

void changes_index_done(struct changes_index *x);
DEFINE_AUTO(struct changes_index, changes_index_done)

struct changes_reader {
	int fd; /* borrowed; FD_NONE: buf has everything */
	uint64_t at;
	const char *buf; /* the index in memory, or the current chunk */
	size_t pos, have;
	bool end;
	/* The current record, unless at the end. The name is valid until the next read. */
	struct changes_rec rec;
	struct str name;
	char *chunk; /* buffer for reading a file */
};

struct changes_writer {
	int dirfd;			 /* borrowed */
	const struct changes_index *old; /* borrowed */
	bool begun;			 /* a difference was found */
	int fd;				 /* FD_NONE while everything fits into buf */
	uint64_t same;			 /* bytes of the old index that are still valid */
	char *buf;
	size_t len, cap;
};

/* All return 0 or -errno. A reader starts before the first record: call next first. */
void changes_reader_init(struct changes_reader *r, const struct changes_index *x);
void changes_reader_done(struct changes_reader *r);
int changes_reader_next(struct changes_reader *r);

void changes_writer_init(struct changes_writer *w, int dirfd, const struct changes_index *old);
void changes_writer_done(struct changes_writer *w);
/* Keep the reader's current record. */
int changes_writer_keep(struct changes_writer *w, const struct changes_reader *r);
/* Omit the reader's current record. */
int changes_writer_drop(struct changes_writer *w);
int changes_writer_put(struct changes_writer *w, const struct changes_rec *rec, struct str name);
/* If there is a new index, replace the old one, *x, with it. */
int changes_writer_commit(struct changes_writer *w, struct changes_index *x);

/*
 * For a writer in another process: it writes to a file without a name, and the owner of the index
 * takes that file over.
 */
int changes_index_file(int dirfd); /* a descriptor or -errno */
int changes_writer_finish(struct changes_writer *w);
void changes_index_replace(struct changes_index *x, int dirfd, int fd); /* takes fd */

/* Order of names in a directory. */
static inline int changes_name_cmp(struct str a, struct str b)
{
	int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return d ? d : (a.n > b.n) - (a.n < b.n);
}
