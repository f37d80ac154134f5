/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of cay apply, which lies in a directory that others write to: no crash, every path
 * that is taken stays below the directory, no more mode bits than we give, and what is taken is
 * written the same.
 */
#include "diff/apply.h"
#include "fuzz.h"

static void check_step(const struct apply_step *s)
{
	FUZZ_CHECK(s->path && s->path[0] && s->path[0] != '/');
	FUZZ_CHECK((s->mode & ~0777u) == 0);
	for (const char *at = s->path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/");

		FUZZ_CHECK(n > 0 && !(n == 1 && at[0] == '.') &&
			   !(n == 2 && at[0] == '.' && at[1] == '.'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = exact_copy(data, size);
	struct buf b = BUF_INIT(1 << 24), again = BUF_INIT(1 << 24);
	struct apply a, c;

	apply_init(&a, -1, -1, "");
	apply_init(&c, -1, -1, "");
	if (apply_journal_parse(&a, (struct str){ copy, size }) == 0) {
		for (size_t i = 0; i < a.n; i++)
			check_step(&a.steps[i]);
		FUZZ_CHECK(apply_journal_put(&a, &b) == 0);
		FUZZ_CHECK(apply_journal_parse(&c, buf_str(&b)) == 0 && c.n == a.n);
		FUZZ_CHECK(apply_journal_put(&c, &again) == 0 && again.len == b.len);
		FUZZ_CHECK(memcmp(again.data, b.data, b.len) == 0);
	}
	apply_done(&a);
	apply_done(&c);
	buf_done(&b);
	buf_done(&again);
	free(copy);
	return 0;
}
