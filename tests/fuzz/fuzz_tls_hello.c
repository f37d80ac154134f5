/* SPDX-License-Identifier: Apache-2.0 */
/* ClientHellos: a whole one is whole only at its last byte, and its name is canonical. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/sniff.h"
#include "wire/tls_hello.h"

static void check_texts(const struct tls_hello *h)
{
	char again[HOST_TEXT];

	FUZZ_CHECK(h->has_sni == (h->sni[0] != '\0'));
	FUZZ_CHECK(!h->has_sni ||
		   (host_name(str_of(h->sni), again) == 0 && strcmp(again, h->sni) == 0));
	FUZZ_CHECK(memchr(h->alpn, '\0', sizeof h->alpn));
	for (const char *p = h->alpn; *p; p++)
		FUZZ_CHECK(*p > ' ' && *p < 0x7f);
	FUZZ_CHECK(tls_version_text(h->version));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct tls_hello h, part;
	int64_t n = tls_hello_parse((struct str){ copy, size }, &h);

	(void)sniff((struct str){ copy, size }, false);
	FUZZ_CHECK(sniff((struct str){ copy, size }, true) > SNIFF_GREETING);
	if (n <= 0)
		return 0;
	FUZZ_CHECK((size_t)n <= size);
	check_texts(&h);
	FUZZ_CHECK(sniff((struct str){ copy, size }, false) == SNIFF_TLS);
	FUZZ_CHECK(tls_hello_parse((struct str){ copy, (size_t)n }, &part) == n);
	for (size_t cut = 0; cut < (size_t)n; cut += 1 + (size_t)n / 16)
		FUZZ_CHECK(tls_hello_parse((struct str){ copy, cut }, &part) == 0);
	return 0;
}
