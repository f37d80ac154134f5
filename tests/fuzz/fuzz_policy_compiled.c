/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled form of a policy, as a gateway reads it. */
#include "base/cleanup.h"
#include "fuzz_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	auto_done(policy_free) struct policy *p = NULL;
	int r = policy_decode((struct str){ copy, size }, &p);

	FUZZ_CHECK((r == 0) == (p != NULL));
	if (p)
		fuzz_policy(p);
	return 0;
}
