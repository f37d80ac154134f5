/* SPDX-License-Identifier: Apache-2.0 */
/* What a front that was taken over may send to the dialer. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/dial_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size };
	char again[HOST_TEXT];
	uint8_t written[DIAL_ASK_SIZE];
	struct dial_answer answer;
	struct dial_ask a;

	(void)dial_answer_read(in, &answer);
	if (dial_ask_read(in, &a) < 0)
		return 0;
	FUZZ_CHECK(size == DIAL_ASK_SIZE && a.slot < LIMIT_DIAL_ASKS);
	FUZZ_CHECK(!a.name[0] || !a.addr.len);
	if (a.name[0])
		FUZZ_CHECK(host_name(str_of(a.name), again) == 0 && strcmp(again, a.name) == 0);
	dial_ask_write(&a, written);
	FUZZ_CHECK(memcmp(written, data, size) == 0);
	return 0;
}
