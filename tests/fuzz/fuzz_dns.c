/* SPDX-License-Identifier: Apache-2.0 */
/* DNS queries from a sandbox: names are canonical, and every answer fits and is an answer. */
#include "base/cleanup.h"
#include "fuzz.h"
#include "wire/dns.h"

static void check_name(const struct dns_query *q)
{
	char again[HOST_TEXT];
	struct ip ip;

	FUZZ_CHECK(memchr(q->name, '\0', sizeof q->name));
	if (q->name[0]) {
		FUZZ_CHECK(host_name(str_of(q->name), again) == 0);
		FUZZ_CHECK(strcmp(again, q->name) == 0);
	}
	(void)dns_reverse(q->name, &ip);
}

static void check_answer(const struct dns_query *q, size_t cap, unsigned records, struct str why)
{
	auto_free uint8_t *out = malloc(cap);
	struct ip v6 = { .len = 16, .b = { 0xfd } };
	struct dns_query back;
	struct dns_reply r;
	size_t n;

	FUZZ_CHECK(out);
	dns_reply_begin(&r, q, out, cap);
	for (unsigned i = 0; i < records; i++)
		dns_reply_ip(&r, &v6, i);
	dns_reply_ptr(&r, "a.example.com", 1);
	n = dns_reply_end(&r, DNS_REFUSED, DNS_EDE_PROHIBITED, why);
	FUZZ_CHECK(n >= 12 && n <= cap);
	FUZZ_CHECK(memcmp(out + 12, q->question, q->question_len) == 0);
	FUZZ_CHECK(dns_query_parse((struct str){ (char *)out, n }, &back) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	struct str in = { copy, size }, msg = { 0 };
	struct dns_query q;
	size_t n;

	if (dns_query_parse(in, &q) >= 0) {
		check_name(&q);
		FUZZ_CHECK(q.udp_size >= DNS_UDP_PLAIN && q.udp_size <= DNS_UDP_MAX);
		FUZZ_CHECK(q.question_len <= DNS_QUESTION);
		check_answer(&q, q.udp_size, size % 64, in);
		check_answer(&q, DNS_TCP_MAX, size % 64, in);
	}
	while ((n = dns_tcp_next(in, &msg)) > 0) {
		FUZZ_CHECK(n <= in.n && msg.n == n - 2);
		(void)dns_query_parse(msg, &q);
		in.p += n;
		in.n -= n;
	}
	return 0;
}
