/* SPDX-License-Identifier: Apache-2.0 */
/* An index of a repository in a sandbox: whatever it holds, the check ends and reads nothing else.
 * The checksum is put right, or the fuzzer would never get past it. */
#include "base/sha1.h"
#include "fuzz.h"
#include "wire/git_index.h"

static uint8_t digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = exact_copy(data, size), hex[SHA1_HEX];
	struct sha1 s;

	(void)git_index_fault((struct str){ copy, size });
	if (size >= SHA1_SIZE) {
		char *sum = copy + size - SHA1_SIZE;

		sha1_init(&s);
		sha1_add(&s, copy, size - SHA1_SIZE);
		sha1_end(&s, hex);
		for (int i = 0; i < SHA1_SIZE; i++)
			sum[i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
		(void)git_index_fault((struct str){ copy, size });
	}
	free(copy);
	return 0;
}
