/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdint.h>

#include "t.h"

static void added_bytes_are_stored_and_terminated(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	CHECK(buf_add(&b, "ab\0c", 4) == 0);
	CHECK(buf_add_c(&b, "de") == 0);
	CHECK(buf_add_str(&b, STR("f")) == 0);
	CHECK(buf_printf(&b, "%d-%s", 7, "x") == 0);
	CHECK(str_eq(buf_str(&b), STR("ab\0cdef7-x")));
	CHECK(b.data[b.len] == '\0');
}

static void data_of_the_ceiling_fits(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);
	char bytes[100];

	memset(bytes, 'x', sizeof bytes);
	CHECK(buf_add(&b, bytes, 99) == 0);
	CHECK(buf_add(&b, bytes, 1) == 0);
	CHECK(b.len == 100 && b.data[100] == '\0');
}

static void one_past_the_ceiling_changes_nothing(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);
	char bytes[101];

	memset(bytes, 'x', sizeof bytes);
	CHECK(buf_add(&b, bytes, 101) == -E2BIG);
	CHECK(b.len == 0);
	CHECK(buf_add(&b, bytes, 50) == 0);
	CHECK(buf_add(&b, bytes, 51) == -E2BIG);
	CHECK(buf_printf(&b, "%051d", 0) == -E2BIG);
	CHECK(buf_reserve(&b, 51) == -E2BIG);
	CHECK(b.len == 50 && b.data[50] == '\0');
	CHECK(buf_printf(&b, "%050d", 0) == 0);
}

static void sizes_near_the_end_of_size_t_are_refused(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	CHECK(buf_add_c(&b, "x") == 0);
	CHECK(buf_reserve(&b, SIZE_MAX) == -E2BIG);
	CHECK(buf_reserve(&b, SIZE_MAX - 1) == -E2BIG);
}

static void no_more_is_allocated_than_ceiling_and_terminator(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	for (int i = 0; i < 1000; i++) {
		CHECK(buf_add(&b, "x", 1) == 0);
		CHECK(b.cap <= 1001);
	}
	CHECK(b.len == 1000);
}

static void a_ceiling_of_zero_accepts_nothing(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(0);

	CHECK(buf_add(&b, "", 0) == 0);
	CHECK(buf_add(&b, "x", 1) == -E2BIG);
	CHECK(b.len == 0);
}

static void shift_drops_the_front(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	buf_shift(&b, 0);
	CHECK(buf_add_c(&b, "abcdef") == 0);
	buf_shift(&b, 2);
	CHECK_STR(b.data, "cdef");
	buf_shift(&b, 4);
	CHECK(b.len == 0 && b.data[0] == '\0');
}

static void cut_drops_the_end_and_terminates(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(100);

	buf_cut(&b, 0);
	CHECK(buf_add_c(&b, "abcdef") == 0);
	buf_cut(&b, 2);
	CHECK(b.len == 2);
	CHECK_STR(b.data, "ab");
}

static void take_hands_over_the_data_and_keeps_the_ceiling(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(3);
	auto_free char *text = NULL;
	size_t n = 0;

	CHECK(buf_add_c(&b, "abc") == 0);
	text = buf_take(&b, &n);
	CHECK_STR(text, "abc");
	CHECK(n == 3 && b.data == NULL && b.len == 0);
	CHECK(buf_add_c(&b, "abcd") == -E2BIG);
	CHECK(buf_add_c(&b, "abc") == 0);
}

static void trim_frees_only_large_empty_buffers(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	CHECK(buf_reserve(&b, 500) == 0);
	buf_trim(&b, 1000);
	CHECK(b.data != NULL);
	CHECK(buf_add_c(&b, "x") == 0);
	buf_trim(&b, 100);
	CHECK(b.data != NULL);
	buf_clear(&b);
	buf_trim(&b, 100);
	CHECK(b.data == NULL && b.cap == 0);
	CHECK(buf_add_c(&b, "x") == 0);
}

T_MAIN(T(added_bytes_are_stored_and_terminated), T(data_of_the_ceiling_fits),
       T(one_past_the_ceiling_changes_nothing), T(sizes_near_the_end_of_size_t_are_refused),
       T(no_more_is_allocated_than_ceiling_and_terminator), T(a_ceiling_of_zero_accepts_nothing),
       T(shift_drops_the_front), T(cut_drops_the_end_and_terminates),
       T(take_hands_over_the_data_and_keeps_the_ceiling), T(trim_frees_only_large_empty_buffers))
