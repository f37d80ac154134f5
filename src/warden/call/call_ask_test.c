/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/call.h"

#include "base/limits.h"
#include "t.h"

static struct buf body = BUF_INIT(8 << 20);
static struct err e;
static struct ask a;

static void begin(void)
{
	buf_clear(&body);
	e = (struct err){ 0 };
}

static void put(uint16_t tag, struct str value)
{
	CHECK(field_put(&body, tag, value) == 0);
}

static void put_n(uint16_t tag, uint64_t v)
{
	CHECK(field_put_u64(&body, tag, v) == 0);
}

static void ok(void)
{
	e = (struct err){ 0 };
	if (ask_parse(&a, buf_str(&body), &e) < 0)
		t_fail_str(__FILE__, __LINE__, e.msg, "no error");
	CHECK(e.kind == ERR_NONE);
}

static void refused(const char *why)
{
	CHECK(ask_parse(&a, buf_str(&body), &e) == -1 && e.kind == ERR_INVALID);
	if (!strstr(e.msg, why))
		t_fail_str(__FILE__, __LINE__, e.msg, why);
}

static struct str text(size_t n)
{
	static char x[LIMIT_PATH + 16];

	memset(x, 'x', sizeof x);
	return (struct str){ x, n };
}

static void a_request_is_taken_apart(void)
{
	begin();
	put_n(TAG_OP, CALL_WRITE_FILE);
	put_n(TAG_TTY, 5);
	put_n(TAG_ROWS, 0x10018);
	put_n(TAG_COLS, 80);
	put_n(TAG_TIMEOUT_MS, 1500);
	put_n(TAG_MODE, 06755);
	put_n(TAG_FINAL, 1);
	put(TAG_ARG, STR("echo"));
	put(TAG_ARG, STR_NONE);
	put(TAG_CWD, STR("/project"));
	put(TAG_USER, STR("me"));
	put(TAG_PATH, STR("/f"));
	put(TAG_CALL_ID, STR("mine"));
	put(TAG_LABEL, STR("k=v"));
	ok();
	CHECK(a.op == CALL_WRITE_FILE && a.tty && a.final && a.rows == 24 && a.cols == 80);
	CHECK(a.timeout_ms == 1500 && a.mode == 0755 && a.argc == 2 && a.nlabels == 1);
	CHECK(str_is(a.cwd, "/project") && str_is(a.user, "me") && str_is(a.path, "/f"));
	CHECK(str_is(a.call_id, "mine") && str_eq(a.body, buf_str(&body)));
}

static void a_detached_request_is_taken_apart(void)
{
	begin();
	put_n(TAG_WINDOW, 1ull << 40);
	put_n(TAG_IDEMPOTENT, 1);
	put(TAG_CALL_ID, STR("mine"));
	put_n(TAG_RETAIN, 1);
	put_n(TAG_OFFSET, 7);
	put_n(TAG_LENGTH, 0);
	ok();
	CHECK(a.has_window && a.window == LIMIT_WINDOW && a.idempotent && a.detached);
	CHECK(a.retain == LIMIT_RETAIN_LEAST && a.offset == 7 && a.has_length && a.length == 0);
	begin();
	put_n(TAG_DETACHED, 1);
	put_n(TAG_RETAIN, UINT64_MAX);
	ok();
	CHECK(a.detached && !a.idempotent && !a.has_window && a.retain == LIMIT_RETAIN);
	put_n(TAG_FINAL, 1);
	refused("cannot end the sandbox");
	begin();
	put_n(TAG_IDEMPOTENT, 1);
	refused("without an id");
}

static void nothing_asked_is_a_shell_with_defaults(void)
{
	begin();
	ok();
	CHECK(a.op == CALL_EXEC && !a.tty && !a.final && a.argc == 0 && a.mode == 0644);
	CHECK(a.timeout_ms == 0 && a.cwd.n == 0 && a.user.n == 0);
}

static void texts_end_at_their_limits(void)
{
	static const struct {
		uint16_t tag;
		size_t most;
		const char *why;
	} texts[] = {
		{ TAG_CWD, LIMIT_PATH - 1, "working directory too long" },
		{ TAG_PATH, LIMIT_PATH - 1, "path too long" },
		{ TAG_USER, LIMIT_NAME, "user name too long" },
		{ TAG_CALL_ID, LIMIT_NAME, "call id too long" },
		{ TAG_LABEL, LIMIT_LABEL, "one too long" },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		begin();
		put(texts[i].tag, text(texts[i].most));
		ok();
		begin();
		put(texts[i].tag, text(texts[i].most + 1));
		refused(texts[i].why);
	}
}

static void lists_end_at_their_limits(void)
{
	static const struct {
		uint16_t tag;
		int most;
		const char *why;
	} lists[] = {
		{ TAG_ARG, LIMIT_ARGS, "too many arguments" },
		{ TAG_ENV, LIMIT_ENV, "too many variables" },
		{ TAG_LABEL, LIMIT_LABELS, "too many labels" },
	};

	for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
		begin();
		for (int i = 0; i < lists[l].most; i++)
			put(lists[l].tag, STR("a=b"));
		ok();
		put(lists[l].tag, STR("a=b"));
		refused(lists[l].why);
	}
}

static void text_with_a_nul_is_refused(void)
{
	static const uint16_t tags[] = { TAG_ARG,  TAG_ENV,  TAG_LABEL,	 TAG_CWD,
					 TAG_USER, TAG_PATH, TAG_CALL_ID };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		begin();
		put(tags[i], STR("a\0b"));
		refused("NUL");
	}
}

static void numbers_of_another_size_are_refused(void)
{
	static const uint16_t tags[] = { TAG_OP,	 TAG_TTY,  TAG_ROWS, TAG_COLS,
					 TAG_TIMEOUT_MS, TAG_MODE, TAG_FINAL };

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		begin();
		put(tags[i], STR("1234567"));
		refused("not eight bytes");
	}
}

static void unknown_tags_are_skipped(void)
{
	begin();
	put(9999, STR("from the future"));
	put(0, STR("\0"));
	put(TAG_HASH, STR("known, but not here"));
	put(TAG_ARG, STR("true"));
	ok();
	CHECK(a.argc == 1);
}

static void unknown_operations_are_refused(void)
{
	begin();
	put(TAG_PATH, STR("/f"));
	put_n(TAG_OP, CALL_WATCH);
	ok();
	put_n(TAG_OP, CALL_WATCH + 1);
	refused("unknown operation");
	begin();
	put_n(TAG_OP, 1ull << 32);
	refused("unknown operation");
}

static void a_file_operation_needs_a_path(void)
{
	begin();
	put_n(TAG_OP, CALL_READ_FILE);
	refused("without a path");
	put(TAG_PATH, STR_NONE);
	refused("without a path");
	put(TAG_PATH, STR("/f"));
	ok();
}

static void a_timeout_always_fits_the_clock(void)
{
	begin();
	put_n(TAG_TIMEOUT_MS, 100ull * 365 * 24 * 3600 * 1000);
	ok();
	CHECK(a.timeout_ms < UINT64_MAX / NS_PER_MS / 4);
	put_n(TAG_TIMEOUT_MS, 100ull * 365 * 24 * 3600 * 1000 + 1);
	refused("timeout too long");
	begin();
	put_n(TAG_TIMEOUT_MS, UINT64_MAX);
	refused("timeout too long");
}

static void fields_cut_anywhere_are_refused(void)
{
	size_t first;

	begin();
	put(TAG_CWD, STR("/project"));
	first = body.len;
	put(TAG_USER, STR("me"));
	for (size_t cut = body.len - 1; cut > first; cut--) {
		buf_cut(&body, cut);
		refused("malformed");
	}
}

T_MAIN(T(a_request_is_taken_apart), T(a_detached_request_is_taken_apart),
       T(nothing_asked_is_a_shell_with_defaults), T(texts_end_at_their_limits),
       T(lists_end_at_their_limits), T(text_with_a_nul_is_refused),
       T(numbers_of_another_size_are_refused), T(unknown_tags_are_skipped),
       T(unknown_operations_are_refused), T(a_file_operation_needs_a_path),
       T(a_timeout_always_fits_the_clock), T(fields_cut_anywhere_are_refused))
