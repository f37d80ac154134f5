/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/cleanup.h"
#include "policy/format.h"
#include "policy/policy_test.h"
#include "wire/frame.h"

static struct buf blob = BUF_INIT(LIMIT_POLICY * 2), rule = BUF_INIT(LIMIT_POLICY);

static int decode(void)
{
	struct policy *p = NULL;
	int r = policy_decode(buf_str(&blob), &p);

	CHECK((r == 0) == (p != NULL));
	policy_free(p);
	return r;
}

static void put_u64(struct buf *b, unsigned tag, uint64_t v)
{
	CHECK(field_put_u64(b, (uint16_t)tag, v) == 0);
}

static void put_text(struct buf *b, unsigned tag, struct str text)
{
	CHECK(field_put(b, (uint16_t)tag, text) == 0);
}

static void begin(void)
{
	buf_clear(&blob);
	buf_clear(&rule);
	put_u64(&blob, P_VERSION, POLICY_FORMAT);
	put_text(&rule, R_ID, STR("a"));
	put_u64(&rule, R_ACTION, POLICY_ACT_ALLOW);
}

static int with_rule(void)
{
	put_text(&blob, P_RULE, buf_str(&rule));
	return decode();
}

static void the_smallest_policies_are_read(void)
{
	begin();
	CHECK(decode() == 0);
	put_text(&rule, R_HOST, STR("a.test"));
	put_text(&rule, R_PORTS, STR("\0\x50\0\x50"));
	CHECK(with_rule() == 0);
}

static void another_version_is_refused_as_such(void)
{
	put_u64(&blob, P_VERSION, POLICY_FORMAT + 1);
	CHECK(decode() == -EPROTO);
	buf_clear(&blob);
	CHECK(decode() == -EBADMSG);
	put_u64(&blob, P_DEFAULT, 0);
	CHECK(decode() == -EBADMSG);
}

static void decode_refuses_what_the_compiler_never_writes(void)
{
	static const struct {
		unsigned tag;
		struct str value;
	} rows[] = {
		{ R_HOST, STR("UPPER.test") },
		{ R_HOST, STR("a..b") },
		{ R_HOST, STR("a\0b") },
		{ R_HOST, STR("") },
		{ R_ADDRESS, STR("") },
		{ R_ADDRESS, STR("\x21\1\2\3\4") },
		{ R_ADDRESS, STR("\x08\x0a\0\0\1") },
		{ R_PORTS, STR("\0\0\0\1") },
		{ R_PORTS, STR("\0\2\0\1") },
		{ R_PORTS, STR("\0\2\0") },
		{ 99, STR("x") },
		{ R_METHOD, STR("GET") }, /* without protocol http */
		{ R_PROTOCOLS, STR("\x10\0\0\0\0\0\0\0") },
		{ R_LENIENT, STR("\x08\0\0\0\0\0\0\0") },
		{ R_LIMITS, STR("\x09\0\x08\0\0\0\1\0\0\0\0\0\0\0") },
		{ R_LIMITS, STR("x") },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin();
		if (rows[i].tag != R_HOST)
			put_text(&rule, R_HOST, STR("a.test"));
		if (rows[i].tag > R_PORTS)
			put_text(&rule, R_PORTS, STR("\0\1\0\1"));
		put_text(&rule, rows[i].tag, rows[i].value);
		if (rows[i].tag < R_PORTS)
			put_text(&rule, R_PORTS, STR("\0\1\0\1"));
		if (with_rule() != -EBADMSG)
			t_fail(__FILE__, (int)i, "taken");
	}
}

static void rules_that_would_allow_too_much_are_refused(void)
{
	begin(); /* neither hosts nor addresses */
	put_text(&rule, R_PORTS, STR("\0\1\0\1"));
	CHECK(with_rule() == -EBADMSG);
	begin(); /* no ports */
	put_text(&rule, R_HOST, STR("a.test"));
	CHECK(with_rule() == -EBADMSG);
	begin(); /* no id */
	buf_clear(&rule);
	CHECK(with_rule() == -EBADMSG);
}

static void order_and_number_matter(void)
{
	begin();
	put_text(&rule, R_PORTS, STR("\0\1\0\1"));
	put_text(&rule, R_HOST, STR("a.test"));
	CHECK(with_rule() == -EBADMSG);
	begin();
	put_text(&rule, R_HOST, STR("a.test"));
	put_text(&rule, R_PORTS, STR("\0\1\0\1"));
	put_u64(&rule, R_PROTOCOLS, 1);
	put_u64(&rule, R_PROTOCOLS, 8);
	CHECK(with_rule() == -EBADMSG);
	begin();
	put_u64(&blob, P_DEFAULT, 0);
	put_u64(&blob, P_DEFAULT, 1);
	CHECK(decode() == -EBADMSG);
}

static void every_cut_is_refused(void)
{
	struct policy *p;

	begin();
	put_text(&rule, R_HOST, STR("a.test"));
	put_text(&rule, R_PORTS, STR("\0\x50\0\x50"));
	CHECK(with_rule() == 0);
	for (size_t n = 1; n < blob.len; n++)
		if (n != 14) /* the version alone is a policy without rules */
			CHECK(policy_decode((struct str){ blob.data, n }, &p) < 0);
}

static void limits_hold_and_one_past_them_is_refused(void)
{
	begin();
	put_text(&rule, R_HOST, STR("a.test"));
	put_text(&rule, R_PORTS, STR("\0\x50\0\x50"));
	for (unsigned i = 0; i < LIMIT_POLICY_RULES; i++)
		put_text(&blob, P_RULE, buf_str(&rule));
	CHECK(decode() == 0);
	CHECK(with_rule() == -E2BIG);
	begin();
	for (unsigned i = 0; i <= LIMIT_POLICY_ITEMS; i++)
		put_text(&rule, R_HOST, STR("a.test"));
	put_text(&rule, R_PORTS, STR("\0\x50\0\x50"));
	CHECK(with_rule() == -EBADMSG);
	begin();
	while (blob.len <= LIMIT_POLICY)
		put_text(&blob, P_NAME, STR("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
	CHECK(decode() == -E2BIG);
}

T_MAIN(T(the_smallest_policies_are_read), T(another_version_is_refused_as_such),
       T(decode_refuses_what_the_compiler_never_writes),
       T(rules_that_would_allow_too_much_are_refused), T(order_and_number_matter),
       T(every_cut_is_refused), T(limits_hold_and_one_past_them_is_refused))
