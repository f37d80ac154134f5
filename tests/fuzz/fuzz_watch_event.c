/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch inside a sandbox writes: events lie in the input, and every input comes to an end.
 */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/watch_event.h"

static bool lies_in(struct str part, const char *from, size_t n)
{
	return part.p >= from && part.p + part.n <= from + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str rest = { copy, size };
	struct watch_event e;
	size_t left = size;

	while (watch_event_next(&rest, &e) == 1) {
		FUZZ_CHECK(rest.n < left);
		left = rest.n;
		FUZZ_CHECK(lies_in(e.name, copy, size));
		FUZZ_CHECK(!e.has_entry || (lies_in(e.entry.path, copy, size) &&
					    lies_in(e.entry.metadata, copy, size)));
	}
	return 0;
}
