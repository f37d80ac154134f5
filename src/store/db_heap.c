/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMALLEST = 5, /* bits */
	LARGEST = 16,
	PIECE = 256 * 1024, /* unused parts take no memory */
};

/* Before each block; its size is the strictest alignment. */
struct head {
	union {
		struct head *next; /* while it is free */
		size_t size;	   /* usable size */
	};
	size_t bits; /* 0: from malloc() */
};

static struct head *free_blocks[LARGEST + 1];
static char *piece;
static size_t left;

static size_t bits_for(size_t n)
{
	size_t bits = SMALLEST;

	while (bits <= LARGEST && ((size_t)1 << bits) < n + sizeof(struct head))
		bits++;
	return bits <= LARGEST ? bits : 0;
}

static struct head *large(size_t n)
{
	struct head *h = malloc(sizeof *h + n);

	if (h)
		*h = (struct head){ .size = n };
	return h;
}

static struct head *block_take(size_t bits)
{
	struct head *h = free_blocks[bits];
	size_t whole = (size_t)1 << bits;

	if (h) {
		free_blocks[bits] = h->next;
	} else {
		/* The rest of the last chunk is too small. */
		if (left < whole) {
			piece = malloc(PIECE);
			left = piece ? PIECE : 0;
		}
		if (!piece)
			return NULL;
		h = (struct head *)piece;
		piece += whole;
		left -= whole;
	}
	*h = (struct head){ .size = whole - sizeof *h, .bits = bits };
	return h;
}

static void *heap_take(int n)
{
	size_t bits = bits_for((size_t)n);
	struct head *h = bits ? block_take(bits) : large((size_t)n);

	return h ? h + 1 : NULL;
}

static void heap_give(void *p)
{
	struct head *h = (struct head *)p - 1;

	if (!h->bits) {
		free(h);
		return;
	}
	h->next = free_blocks[h->bits];
	free_blocks[h->bits] = h;
}

static int heap_size(void *p)
{
	return p ? (int)((struct head *)p - 1)->size : 0;
}

static void *heap_resize(void *p, int n)
{
	int had = heap_size(p);
	void *now;

	if (n <= had)
		return p;
	now = heap_take(n);
	if (!now)
		return NULL;
	memcpy(now, p, (size_t)had);
	heap_give(p);
	return now;
}

static int heap_round(int n)
{
	size_t bits = bits_for((size_t)n);

	return bits ? (int)(((size_t)1 << bits) - sizeof(struct head)) : (n + 7) & ~7;
}

static int heap_begin(void *unused)
{
	(void)unused;
	return SQLITE_OK;
}

static void heap_end(void *unused)
{
	(void)unused;
}

const sqlite3_mem_methods db_heap = {
	.xMalloc = heap_take,
	.xFree = heap_give,
	.xRealloc = heap_resize,
	.xSize = heap_size,
	.xRoundup = heap_round,
	.xInit = heap_begin,
	.xShutdown = heap_end,
};
