/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 from a client: greeting, then request; and what a server answers to us. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/socks5.h"
#include "wire/socks5_client.h"

static void check_request(struct str in)
{
	struct socks_request q = { 0 }, part;
	enum socks_rep rep;
	char again[HOST_TEXT];
	int64_t n = socks_request_parse(in, &q, &rep);

	if (n <= 0) {
		FUZZ_CHECK(n == 0 || rep != SOCKS_OK);
		return;
	}
	FUZZ_CHECK((size_t)n <= in.n && rep == SOCKS_OK && q.port);
	FUZZ_CHECK((q.host.ip.len == 0) == (q.host.name[0] != '\0'));
	if (q.host.name[0])
		FUZZ_CHECK(host_name(str_of(q.host.name), again) == 0 &&
			   strcmp(again, q.host.name) == 0);
	for (size_t cut = 0; cut < (size_t)n; cut++)
		FUZZ_CHECK(socks_request_parse((struct str){ in.p, cut }, &part, &rep) == 0);
}

static void check_answers(struct str in)
{
	bool wants_password;
	int64_t n = socks_ask_answer(in);

	FUZZ_CHECK(n <= (int64_t)in.n && socks_hello_answer(in, &wants_password) <= (int64_t)in.n &&
		   socks_password_answer(in) <= (int64_t)in.n);
	for (size_t cut = 0; n > 0 && cut < (size_t)n; cut++)
		FUZZ_CHECK(socks_ask_answer((struct str){ in.p, cut }) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size };
	bool ok = false;
	int64_t n = socks_greeting_parse(in, &ok);

	check_request(in);
	check_answers(in);
	if (n <= 0)
		return 0;
	FUZZ_CHECK((size_t)n <= size);
	check_request((struct str){ in.p + n, in.n - (size_t)n });
	return 0;
}
