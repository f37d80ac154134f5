/* SPDX-License-Identifier: Apache-2.0 */
#include "store/key_limits.h"

#include <errno.h>

#include "t.h"

static struct err e;

static void what_is_written_is_read_again(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);
	struct key_limits l = { .of = { [KEY_SANDBOXES] = 5, [KEY_MEMORY] = KEY_LIMIT_NONE },
				.scope = SCOPE_READ | SCOPE_USE };
	struct key_limits got = { .scope = 99 };

	CHECK(key_limits_put(&l, &b) == 0);
	CHECK_STR(b.data, "sandboxes=5 memory=9223372036854775807 scope=read,use");
	CHECK(key_limits_read(buf_str(&b), &got) == 0);
	CHECK(memcmp(&got, &l, sizeof got) == 0);
	CHECK(key_limits_read(STR_NONE, &got) == 0 && got.scope == 0 && got.of[KEY_SANDBOXES] == 0);
	key_limits_default(&l);
	buf_clear(&b);
	CHECK(key_limits_put(&l, &b) == 0 && key_limits_read(buf_str(&b), &got) == 0);
	CHECK(memcmp(&got, &l, sizeof got) == 0);
}

static void damaged_text_is_refused(void)
{
	static const char *const bad[] = { "sandboxes",
					   "sandboxes=",
					   "sandboxes=0",
					   "sandboxes=01",
					   "sandboxes=-1",
					   "sandboxes=1x",
					   "sandboxes=9223372036854775808",
					   "sandboxes=18446744073709551616",
					   "sandboxes=1 sandboxes=2",
					   "sandboxes=1  calls=2",
					   " sandboxes=1",
					   "other=1",
					   "=1",
					   "scope=",
					   "scope=read,",
					   "scope=nothing",
					   "scope=read scope=all" };
	struct key_limits got = { .scope = 7 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (key_limits_read(str_of(bad[i]), &got) != -EBADMSG)
			t_fail(__FILE__, __LINE__, bad[i]);
	CHECK(key_limits_read((struct str){ "sandboxes=\0", 11 }, &got) == -EBADMSG);
	CHECK(got.scope == 7);
}

static void a_key_says_more_than_the_server(void)
{
	struct key_limits l, server = { .of = { [KEY_CALLS] = 7, [KEY_RATE] = 8 } };
	const struct key_limits key = { .of = { [KEY_CALLS] = KEY_LIMIT_NONE },
					.scope = SCOPE_READ };

	key_limits_default(&l);
	CHECK(l.of[KEY_BOX_MEMORY] == 2ull << 30 && l.scope == SCOPE_ALL);
	key_limits_merge(&l, &server);
	CHECK(l.of[KEY_CALLS] == 7 && l.of[KEY_RATE] == 8 && l.scope == SCOPE_ALL);
	key_limits_merge(&l, &key);
	CHECK(l.of[KEY_CALLS] == KEY_LIMIT_NONE && l.of[KEY_RATE] == 8 && l.scope == SCOPE_READ);
}

static struct key_use box(uint64_t memory, uint64_t cpu_milli)
{
	return (struct key_use){ 1, memory, cpu_milli, 100, 1 << 20 };
}

static bool admits(const struct key_limits *l, struct key_use now, struct key_use more,
		   enum err_kind kind, const char *code)
{
	e = (struct err){ 0 };
	if (key_limits_admit(l, &now, &more, &e) == 0)
		return kind == ERR_NONE;
	return e.kind == kind && strcmp(e.code, code) == 0;
}

static void sums_hold_at_the_limit_and_not_above(void)
{
	struct key_limits l;

	key_limits_default(&l);
	l.of[KEY_SANDBOXES] = 2;
	l.of[KEY_MEMORY] = 1000;
	l.of[KEY_CPU_MILLI] = 500;
	CHECK(admits(&l, (struct key_use){ 1, 900, 400, 0, 0 }, box(100, 100), ERR_NONE, ""));
	CHECK(admits(&l, (struct key_use){ 2, 0, 0, 0, 0 }, box(100, 100), ERR_LIMIT,
		     "quota.sandboxes"));
	CHECK(admits(&l, (struct key_use){ 1, 901, 0, 0, 0 }, box(100, 100), ERR_LIMIT,
		     "quota.memory"));
	CHECK(admits(&l, (struct key_use){ 1, 0, 401, 0, 0 }, box(100, 100), ERR_LIMIT,
		     "quota.cpus"));
	CHECK(admits(&l, (struct key_use){ 1, UINT64_MAX, 0, 0, 0 }, box(100, 100), ERR_LIMIT,
		     "quota.memory"));
}

static void a_sandbox_without_a_limit_fits_no_limit(void)
{
	struct key_limits l;

	key_limits_default(&l);
	CHECK(admits(&l, (struct key_use){ 0 }, box(0, 100), ERR_NOT_ALLOWED,
		     "quota.sandbox_memory"));
	CHECK(admits(&l, (struct key_use){ 0 }, box(1, 0), ERR_NOT_ALLOWED, "quota.sandbox_cpus"));
	CHECK(admits(&l, (struct key_use){ 0 }, box((2ull << 30) + 1, 1), ERR_NOT_ALLOWED,
		     "quota.sandbox_memory"));
	l.of[KEY_BOX_MEMORY] = KEY_LIMIT_NONE;
	CHECK(admits(&l, (struct key_use){ 0 }, box(0, 100), ERR_NONE, ""));
	l.of[KEY_MEMORY] = 1000; /* a sum needs numbers */
	CHECK(admits(&l, (struct key_use){ 0 }, box(0, 100), ERR_LIMIT, "quota.memory"));
}

T_MAIN(T(what_is_written_is_read_again), T(damaged_text_is_refused),
       T(a_key_says_more_than_the_server), T(sums_hold_at_the_limit_and_not_above),
       T(a_sandbox_without_a_limit_fits_no_limit))
