/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/retain.h"

#include <stdlib.h>

#include "t.h"

enum { OUT = 1, ERR = 2 };

static struct retain r;

static void add(uint8_t stream, const char *text)
{
	CHECK(retain_add(&r, stream, str_of(text)) == 0);
}

/* Read the next piece completely; "-" at the end. */
static void next_is(struct retain_cursor *at, uint8_t stream, const char *text)
{
	struct str data;
	uint8_t got = 0;

	if (!retain_peek(&r, at, &got, &data)) {
		CHECK(strcmp(text, "-") == 0);
		return;
	}
	CHECK(got == stream && str_is(data, text));
	retain_take(at, data.n);
}

static void both_streams_come_back_in_order(void)
{
	struct retain_cursor at = { 0 };

	retain_init(&r, 1000);
	next_is(&at, 0, "-");
	add(OUT, "one");
	add(OUT, "two");
	add(ERR, "bad");
	next_is(&at, OUT, "onetwo");
	add(ERR, "worse");
	next_is(&at, ERR, "badworse");
	next_is(&at, 0, "-");
	add(ERR, "!");
	next_is(&at, ERR, "!");
	CHECK(at.offset == 15 && r.end == 15);
	retain_done(&r);
}

static void a_reader_begins_at_its_offset(void)
{
	struct retain_cursor at = { .offset = 5 }, late = { .offset = 99 };

	retain_init(&r, 1000);
	add(OUT, "0123");
	add(ERR, "4567");
	next_is(&at, ERR, "567");
	next_is(&late, 0, "-");
	CHECK(late.offset == 8);
	add(OUT, "8");
	next_is(&late, OUT, "8");
	retain_done(&r);
}

static void the_oldest_bytes_go_first(void)
{
	struct retain_cursor at = { 0 };
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	retain_init(&r, 4000);
	for (int i = 0; i < 10; i++) {
		add(i % 2 ? OUT : ERR, text);
		retain_trim(&r, UINT64_MAX);
	}
	CHECK(r.end == 10000 && r.base == 6000);
	next_is(&at, ERR, text);
	CHECK(at.offset == 7000);
	retain_done(&r);
}

static void nothing_is_dropped_before_a_reader_had_it(void)
{
	struct retain_cursor at = { 0 };
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	retain_init(&r, 1000);
	add(OUT, text);
	CHECK(retain_is_full(&r, 0) && !retain_is_full(&r, 1) && !retain_is_full(&r, UINT64_MAX));
	add(ERR, text);
	retain_trim(&r, at.offset);
	next_is(&at, OUT, text);
	retain_trim(&r, at.offset); /* the reader is at the end of the first chunk */
	next_is(&at, ERR, text);
	retain_trim(&r, at.offset);
	CHECK(r.base == 1000);
	next_is(&at, 0, "-");
	retain_done(&r);
}

static void single_bytes_do_not_cost_more_than_twice_the_limit(void)
{
	retain_init(&r, 64 * 1024);
	for (int i = 0; i < 100000; i++) {
		add(i % 2 ? OUT : ERR, "x");
		retain_trim(&r, UINT64_MAX);
		CHECK(r.cost <= 2 * r.most + 512);
	}
	CHECK(r.end == 100000 && r.base > 90000);
	retain_drop(&r);
	CHECK(r.cost == 0 && r.base == r.end);
	retain_done(&r);
}

T_MAIN(T(both_streams_come_back_in_order), T(a_reader_begins_at_its_offset),
       T(the_oldest_bytes_go_first), T(nothing_is_dropped_before_a_reader_had_it),
       T(single_bytes_do_not_cost_more_than_twice_the_limit))
