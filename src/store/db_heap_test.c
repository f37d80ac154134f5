/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "t.h"

enum { BLOCKS = 200, STEPS = 200000 };

struct block {
	unsigned char *p, mark;
	int n;
};

static struct block blocks[BLOCKS];

static bool is_whole(const struct block *b)
{
	for (int i = 0; i < b->n; i++)
		if (b->p[i] != b->mark)
			return false;
	return true;
}

static int some_size(uint32_t r)
{
	static const int most[] = { 1, 16, 17, 48, 200, 4096, 65520, 65521, 300000 };

	return 1 + (int)(r / 16 % (uint32_t)most[r % 9]);
}

/* Take, resize and free blocks at random: no block ever overlaps another. */
static void blocks_are_apart(void)
{
	uint32_t r = 1;

	for (int i = 0; i < STEPS; i++) {
		struct block *b;
		int n;

		r = r * 1664525 + 1013904223;
		b = &blocks[(r >> 8) % BLOCKS];
		n = some_size(r * 2654435761u >> 4);
		if (b->p)
			CHECK(is_whole(b));
		if (b->p && r >> 31) {
			db_heap.xFree(b->p);
			b->p = NULL;
			continue;
		}
		if (b->p && n > 0 && n < b->n)
			b->n = n;
		b->p = b->p ? db_heap.xRealloc(b->p, n) : db_heap.xMalloc(n);
		CHECK(b->p != NULL && (uintptr_t)b->p % 16 == 0);
		CHECK(db_heap.xSize(b->p) >= n);
		b->mark = (unsigned char)r;
		b->n = n;
		memset(b->p, b->mark, (size_t)n);
	}
}

static void content_survives_growing(void)
{
	char *p = db_heap.xMalloc(10);

	memcpy(p, "123456789", 10);
	for (int n = 20; n < 1000000; n *= 3) {
		p = db_heap.xRealloc(p, n);
		CHECK(p && strcmp(p, "123456789") == 0);
	}
	db_heap.xFree(p);
}

static void freed_blocks_are_reused(void)
{
	void *a = db_heap.xMalloc(1000), *b;

	db_heap.xFree(a);
	b = db_heap.xMalloc(1001);
	CHECK(a == b);
	db_heap.xFree(b);
}

static void rounding_is_what_is_had(void)
{
	for (int n = 1; n < 200000; n += 13) {
		void *p = db_heap.xMalloc(n);

		CHECK(db_heap.xRoundup(n) >= n);
		CHECK(db_heap.xSize(p) >= n && db_heap.xRoundup(n) >= db_heap.xSize(p));
		db_heap.xFree(p);
	}
}

T_MAIN(T(blocks_are_apart), T(content_survives_growing), T(freed_blocks_are_reused),
       T(rounding_is_what_is_had))
