/* SPDX-License-Identifier: Apache-2.0 */
/* The init of a sandbox says anything at any time, while good clients ask for calls and switches.
 */
#include "fuzz.h"
#include "warden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_warden(FUZZ_INIT, data, size);
	return 0;
}
