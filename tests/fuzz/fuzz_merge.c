/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three-way merges of texts that a sandbox wrote: the first two bytes say where the input is cut
 * into base, ours and theirs. A side that changed nothing gives way, equal sides are taken as they
 * are, and neither side is preferred.
 */
#include "diff/merge.h"
#include "fuzz.h"

static const struct merge_names names = { "ours", "theirs" };

static int merge(struct str base, struct str ours, struct str theirs, struct buf *out)
{
	int r = merge_texts(base, ours, theirs, &names, out);

	FUZZ_CHECK(r >= 0);
	return r;
}

static void gives(struct str base, struct str ours, struct str theirs, struct str want)
{
	struct buf out = BUF_INIT(1 << 24);

	FUZZ_CHECK(merge(base, ours, theirs, &out) == 0);
	FUZZ_CHECK(out.len == want.n && (want.n == 0 || memcmp(out.data, want.p, want.n) == 0));
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf one = BUF_INIT(1 << 24), two = BUF_INIT(1 << 24);
	struct str base, ours, theirs;
	size_t i, j;
	char *copy;
	int r;

	if (size < 2)
		return 0;
	copy = exact_copy(data + 2, size - 2);
	size -= 2;
	i = size * data[0] / 256;
	j = i + (size - i) * data[1] / 256;
	base = (struct str){ copy, i };
	ours = (struct str){ copy + i, j - i };
	theirs = (struct str){ copy + j, size - j };
	gives(base, ours, ours, ours);
	gives(base, base, theirs, theirs);
	gives(base, ours, base, ours);
	r = merge(base, ours, theirs, &one);
	FUZZ_CHECK((merge(base, theirs, ours, &two) == 0) == (r == 0));
	if (r == 0)
		FUZZ_CHECK(one.len == two.len &&
			   (one.len == 0 || memcmp(one.data, two.data, one.len) == 0));
	buf_done(&one);
	buf_done(&two);
	free(copy);
	return 0;
}
