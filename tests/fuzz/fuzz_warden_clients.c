/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a warden send anything, in any order: every message of proto.h, and bytes. */
#include "fuzz.h"
#include "warden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_warden(FUZZ_CLIENTS, data, size);
	return 0;
}
