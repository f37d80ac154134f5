/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a detached call, kept so that a client can read it later.
 *
 * Both streams are kept in the order in which they were read. An offset counts the bytes of both
 * streams. When there are too many bytes, the oldest are dropped, except bytes that a reader still
 * needs: the caller stops adding while retain_is_full().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct retain_chunk;

struct retain {
	struct retain_chunk *first, *last;
	uint64_t base; /* offset of the first byte kept */
	uint64_t end;
	size_t most; /* bytes to keep; more than a few chunks */
	size_t cost; /* memory in use */
};

/* A reader's position. To start at an offset, zero everything else. */
struct retain_cursor {
	struct retain_chunk *chunk;
	size_t pos;
	uint64_t offset;
};

void retain_init(struct retain *r, size_t most);
void retain_done(struct retain *r);
/* 0 or -ENOMEM. stream: a frame type. */
int retain_add(struct retain *r, uint8_t stream, struct str data);
/* Drop the oldest bytes above `most`. needed: lowest offset of a reader; UINT64_MAX: no reader. */
void retain_trim(struct retain *r, uint64_t needed);
/* Drop everything. Legal only without readers. */
void retain_drop(struct retain *r);
/* True if the slowest reader must read before anything is added. Call after retain_trim(). */
bool retain_is_full(const struct retain *r, uint64_t needed);
/* The next bytes of one stream; false at the end. A cursor before `base` moves up to `base`. */
bool retain_peek(const struct retain *r, struct retain_cursor *at, uint8_t *ret_stream,
		 struct str *ret);
/* The reader has read n of these bytes. */
void retain_take(struct retain_cursor *at, size_t n);
