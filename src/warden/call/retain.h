/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a detached call, kept so that a client can read it later.
 *
 * Both streams are kept in the order in which they were read. An offset counts the bytes of both.
 * The oldest bytes are dropped when there are too many, but none that a reader still needs: the
 * caller stops adding while retain_is_full().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct retain_chunk;

struct retain {
	struct retain_chunk *first, *last;
	uint64_t base; /* offset of the first byte that is kept */
	uint64_t end;
	size_t most; /* bytes to keep; more than a few chunks */
	size_t cost; /* memory in use */
};

/* A reader's place. Zeroed but for offset: at that offset. */
struct retain_cursor {
	struct retain_chunk *chunk;
	size_t pos;
	uint64_t offset;
};

void retain_init(struct retain *r, size_t most);
void retain_done(struct retain *r);
/* 0 or -ENOMEM. stream: a frame type. */
int retain_add(struct retain *r, uint8_t stream, struct str data);
/* Drop what is too much. needed: the least offset that a reader is at, UINT64_MAX without one. */
void retain_trim(struct retain *r, uint64_t needed);
/* Drop everything. There must be no reader. */
void retain_drop(struct retain *r);
/* Nothing may be added before that reader has taken some; after retain_trim(). */
bool retain_is_full(const struct retain *r, uint64_t needed);
/* What follows the cursor, of one stream; false at the end. An offset before `base` moves up. */
bool retain_peek(const struct retain *r, struct retain_cursor *at, uint8_t *ret_stream,
		 struct str *ret);
/* The reader has taken n bytes of it. */
void retain_take(struct retain_cursor *at, size_t n);
