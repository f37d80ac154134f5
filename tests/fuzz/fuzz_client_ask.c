/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks a warden to run: what is accepted keeps to the limits, what is not says why.
 */
#include <string.h>

#include "base/limits.h"
#include "fuzz.h"
#include "warden/call/call.h"

static void check_text(struct str body, struct str text, size_t most)
{
	FUZZ_CHECK(text.n <= most && str_is_text(text));
	FUZZ_CHECK(!text.p || (text.p >= body.p && text.p + text.n <= body.p + body.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = { (const char *)data, size };
	struct err e = { 0 };
	struct ask a;

	if (ask_parse(&a, body, &e) < 0) {
		FUZZ_CHECK(e.kind == ERR_INVALID && e.msg[0]);
		return 0;
	}
	FUZZ_CHECK(e.kind == ERR_NONE && a.op <= CALL_WRITE_TREE && (a.mode & ~0777ull) == 0);
	FUZZ_CHECK(a.argc <= LIMIT_ARGS && a.nlabels <= LIMIT_LABELS);
	FUZZ_CHECK(a.rows <= 0xffff && a.cols <= 0xffff);
	FUZZ_CHECK(a.timeout_ms < UINT64_MAX / NS_PER_MS / 4);
	check_text(body, a.cwd, LIMIT_PATH - 1);
	check_text(body, a.path, LIMIT_PATH - 1);
	check_text(body, a.user, LIMIT_NAME);
	check_text(body, a.call_id, LIMIT_NAME);
	FUZZ_CHECK(a.op == CALL_EXEC || a.path.n);
	return 0;
}
