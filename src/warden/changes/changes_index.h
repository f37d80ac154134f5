/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of changes.c: one record per entry of the uppers, in walk order (depth first, the
 * names of a directory sorted bytewise, a directory before what is in it). It is read and
 * written as a stream. As long as a walk finds what the index says, nothing is written: the
 * new index is begun at the first difference, with a copy of all that comes before it.
 *
 * An index of up to CHANGES_INDEX_CHUNK bytes is kept in memory, in a block of its own size:
 * most sandboxes never have more, and making a file costs many times as much as their whole
 * walk. A longer one is a file, which is ours alone and dies with the sandbox: native byte
 * order, no fsync.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
	CHANGES_WHITEOUT = 1, /* says that the name is gone; all numbers but depth and mode are 0 */
	CHANGES_OPAQUE = 2,   /* directory: hides the one of the lower */
	CHANGES_XWHITEOUTS = 4, /* directory: may hold whiteouts that are marked by xattr */
};

struct changes_rec {
	uint64_t ino, btime_ns, ctime_ns, mtime_ns, size;
	uint32_t depth; /* 0: the root of an upper */
	uint32_t mode;	/* with the type */
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
	int fd; /* borrowed; FD_NONE: all there is lies in buf */
	uint64_t at;
	const char *buf; /* the index in memory, or the chunk */
	size_t pos, have;
	bool end;
	/* The current record, unless at the end; the name until the next one is read. */
	struct changes_rec rec;
	struct str name;
	char *chunk; /* of a file */
};

struct changes_writer {
	int dirfd;			 /* borrowed */
	const struct changes_index *old; /* borrowed */
	bool begun;			 /* there is a difference */
	int fd;				 /* FD_NONE while all of it fits into buf */
	uint64_t same;			 /* bytes of the old index that still hold */
	char *buf;
	size_t len, cap;
};

/* All return 0 or -errno. A reader begins before the first record: call next. */
void changes_reader_init(struct changes_reader *r, const struct changes_index *x);
void changes_reader_done(struct changes_reader *r);
int changes_reader_next(struct changes_reader *r);

void changes_writer_init(struct changes_writer *w, int dirfd, const struct changes_index *old);
void changes_writer_done(struct changes_writer *w);
/* The reader's current record holds on. */
int changes_writer_keep(struct changes_writer *w, const struct changes_reader *r);
/* The reader's current record goes. */
int changes_writer_drop(struct changes_writer *w);
int changes_writer_put(struct changes_writer *w, const struct changes_rec *rec, struct str name);
/* Put the new index in the place of *x, the old one, if there is a new. */
int changes_writer_commit(struct changes_writer *w, struct changes_index *x);

/* The order of names in a directory. */
static inline int changes_name_cmp(struct str a, struct str b)
{
	int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return d ? d : (a.n > b.n) - (a.n < b.n);
}
