/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What find(1) prints inside a sandbox, where anybody may have replaced it: entries lie in the
 * input, numbers are in range, and every input comes to an end.
 */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/file_entry.h"

static bool lies_in(struct str part, const char *from, size_t n)
{
	return part.p >= from && part.p + part.n <= from + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str rest = { copy, size };
	struct file_entry f, before = { 0 };
	size_t left = size;

	while (file_entry_next(&rest, &f) == 1) {
		FUZZ_CHECK(rest.n < left);
		left = rest.n;
		FUZZ_CHECK(f.mode <= 07777 && f.path.n > 0 && f.path.p[0] == '/');
		FUZZ_CHECK(lies_in(f.path, copy, size) && lies_in(f.link, copy, size) &&
			   lies_in(f.owner, copy, size) && lies_in(f.group, copy, size) &&
			   lies_in(f.permissions, copy, size));
		FUZZ_CHECK(file_entry_compare(f.path, f.path) == 0);
		FUZZ_CHECK(file_entry_compare(f.path, before.path) ==
			   -file_entry_compare(before.path, f.path));
		before = f;
	}
	return 0;
}
