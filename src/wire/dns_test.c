/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns.h"

#include <errno.h>

#include "base/buf.h"
#include "t.h"

/* A query for www.Example.com A; with EDNS, 1232 bytes. */
static const char plain[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
			    "\x03www\x07"
			    "Example\x03"
			    "com\x00\x00\x01\x00\x01";
static const char edns[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01"
			   "\x03www\x07"
			   "Example\x03"
			   "com\x00\x00\x01\x00\x01"
			   "\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00";
#define MSG(lit) ((struct str){ (lit), sizeof(lit) - 1 })

static void a_query_is_parsed(void)
{
	struct dns_query q;

	CHECK(dns_query_parse(MSG(plain), &q) == 0);
	CHECK(q.id == 0x1234 && q.type == DNS_A && q.class == 1 && q.recursion && !q.edns);
	CHECK(q.udp_size == DNS_UDP_PLAIN);
	CHECK_STR(q.name, "www.example.com");
	CHECK(dns_query_parse(MSG(edns), &q) == 0);
	CHECK(q.edns && q.dnssec_ok && q.udp_size == DNS_UDP_MAX);
}

static void truncated_and_trailing_bytes_are_refused(void)
{
	struct dns_query q;
	char longer[sizeof edns];

	for (size_t n = 0; n < sizeof edns - 1; n++) {
		int r = dns_query_parse((struct str){ edns, n }, &q);

		CHECK(r == (n < 12 ? -EBADMSG : DNS_FORMERR));
	}
	memcpy(longer, edns, sizeof edns);
	CHECK(dns_query_parse((struct str){ longer, sizeof longer }, &q) == DNS_FORMERR);
}

static int parse_with(size_t at, unsigned char byte, struct dns_query *q)
{
	char copy[sizeof edns - 1];

	memcpy(copy, edns, sizeof copy);
	copy[at] = (char)byte;
	return dns_query_parse((struct str){ copy, sizeof copy }, q);
}

static void anything_but_one_question_is_refused(void)
{
	struct dns_query q;

	CHECK(parse_with(2, 0x81, &q) == -EBADMSG);    /* an answer */
	CHECK(parse_with(2, 0x09, &q) == DNS_NOTIMP);  /* opcode */
	CHECK(parse_with(2, 0x03, &q) == DNS_FORMERR); /* TC */
	CHECK(parse_with(3, 0x05, &q) == DNS_FORMERR); /* rcode */
	CHECK(parse_with(5, 0, &q) == DNS_FORMERR);
	CHECK(parse_with(5, 2, &q) == DNS_FORMERR);
	CHECK(parse_with(7, 1, &q) == DNS_FORMERR);
	CHECK(parse_with(9, 1, &q) == DNS_FORMERR);
	CHECK(parse_with(11, 2, &q) == DNS_FORMERR);
	CHECK(parse_with(35, 1, &q) == DNS_FORMERR); /* the additional record is not OPT */
	CHECK(parse_with(39, 1, &q) == DNS_BADVERS);
	CHECK(parse_with(3, 0x20, &q) == 0); /* AD may be set */
}

static void compression_is_refused(void)
{
	static const char loop[] = "\0\1\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1";
	static const char to_head[] = "\0\1\1\0\0\1\0\0\0\0\0\0\1a\xc0\0\0\1\0\1";
	static const char reserved[] = "\0\1\1\0\0\1\0\0\0\0\0\0\x41"
				       "a\0\0\1\0\1";
	struct dns_query q;

	CHECK(dns_query_parse(MSG(loop), &q) == DNS_FORMERR);
	CHECK(dns_query_parse(MSG(to_head), &q) == DNS_FORMERR);
	CHECK(dns_query_parse(MSG(reserved), &q) == DNS_FORMERR);
}

static void names_that_are_not_hosts_are_returned_empty(void)
{
	static const char dot[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3a.b\3"
				  "com\0\0\1\0\1";
	static const char nul[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3a\0b\3"
				  "com\0\0\1\0\1";
	static const char number[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3"
				     "127\1"
				     "1\0\0\1\0\1";
	static const char root[] = "\0\1\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1";
	struct dns_query q;

	CHECK(dns_query_parse(MSG(dot), &q) == 0 && q.name[0] == '\0');
	CHECK(dns_query_parse(MSG(nul), &q) == 0 && q.name[0] == '\0');
	CHECK(dns_query_parse(MSG(number), &q) == 0 && q.name[0] == '\0');
	CHECK(dns_query_parse(MSG(root), &q) == 0 && q.name[0] == '\0' && q.question_len == 5);
}

/* A name of `labels` labels of 62 and one of `last` bytes: 63 * labels + last + 2 on the wire. */
static int parse_long(unsigned labels, unsigned last)
{
	char msg[600] = "\0\1\1\0\0\1\0\0\0\0\0\0";
	struct dns_query q;
	size_t n = 12;

	for (unsigned i = 0; i <= labels; i++) {
		unsigned len = i < labels ? 62 : last;

		msg[n++] = (char)len;
		memset(msg + n, 'a', len);
		n += len;
	}
	memcpy(msg + n, "\0\0\1\0\1", 5);
	return dns_query_parse((struct str){ msg, n + 5 }, &q) == 0 && strlen(q.name) ? 0 : -1;
}

static void names_of_255_bytes_pass_and_of_256_fail(void)
{
	CHECK(parse_long(3, 63) == 0);
	CHECK(parse_long(4, 1) == 0);
	CHECK(parse_long(4, 2) == -1);
	CHECK(parse_long(7, 62) == -1);
}

static void an_answer_has_question_and_records(void)
{
	static const char want[] =
		"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00"
		"\x03www\x07"
		"Example\x03"
		"com\x00\x00\x01\x00\x01"
		"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x01\x02\x03";
	uint8_t out[DNS_UDP_PLAIN];
	struct dns_reply r;
	struct dns_query q;
	struct ip ip = { 4, { 10, 1, 2, 3 } };
	size_t n;

	CHECK(dns_query_parse(MSG(plain), &q) == 0);
	dns_reply_begin(&r, &q, out, sizeof out);
	dns_reply_ip(&r, &ip, 60);
	n = dns_reply_end(&r, DNS_OK, DNS_EDE_NONE, STR_NONE);
	CHECK(n == sizeof want - 1 && memcmp(out, want, n) == 0);
}

static void a_refusal_says_why(void)
{
	static const struct str why = STR("no rule allows www.example.com");
	uint8_t out[DNS_UDP_MAX];
	struct dns_reply r;
	struct dns_query q;
	size_t n;

	CHECK(dns_query_parse(MSG(edns), &q) == 0);
	dns_reply_begin(&r, &q, out, q.udp_size);
	n = dns_reply_end(&r, DNS_REFUSED, DNS_EDE_PROHIBITED, why);
	CHECK((out[3] & 15) == DNS_REFUSED && out[11] == 1);
	CHECK(n == 12u + q.question_len + 11 + 6 + why.n);
	CHECK(memcmp(out + n - why.n, why.p, why.n) == 0);
	CHECK(out[n - why.n - 1] == DNS_EDE_PROHIBITED);
}

static void bad_version_uses_both_halves_of_the_code(void)
{
	uint8_t out[DNS_UDP_MAX];
	struct dns_reply r;
	struct dns_query q;
	size_t n;

	CHECK(parse_with(39, 1, &q) == DNS_BADVERS);
	dns_reply_begin(&r, &q, out, q.udp_size);
	n = dns_reply_end(&r, DNS_BADVERS, DNS_EDE_NONE, STR_NONE);
	CHECK((out[3] & 15) == 0 && out[n - 6] == 1);
}

static void an_oversize_answer_is_cut_and_marked(void)
{
	uint8_t out[DNS_UDP_PLAIN];
	struct ip ip = { .len = 16 };
	struct dns_reply r;
	struct dns_query q;
	size_t n;

	CHECK(dns_query_parse(MSG(edns), &q) == 0);
	dns_reply_begin(&r, &q, out, sizeof out);
	for (int i = 0; i < 100; i++)
		dns_reply_ip(&r, &ip, 1);
	n = dns_reply_end(&r, DNS_OK, DNS_EDE_OTHER, STR("some text that has no room"));
	CHECK(n <= sizeof out && (out[2] & 2));
	CHECK(out[7] == (sizeof out - 12 - q.question_len - 11) / 28);
}

static void ptr_answers_hold_names(void)
{
	uint8_t out[DNS_UDP_PLAIN];
	struct dns_reply r;
	struct dns_query q;
	size_t n;

	CHECK(dns_query_parse(MSG(plain), &q) == 0);
	dns_reply_begin(&r, &q, out, sizeof out);
	dns_reply_ptr(&r, "a.example.com", 5);
	n = dns_reply_end(&r, DNS_OK, DNS_EDE_NONE, STR_NONE);
	CHECK(memcmp(out + n - 17,
		     "\x00\x0f\x01"
		     "a\x07"
		     "example\x03"
		     "com",
		     17) == 0);
}

static void reverse_names_are_addresses(void)
{
	static const char v6[] = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2."
				 "ip6.arpa";
	static const char *const bad[] = { "in-addr.arpa",
					   "1.in-addr.arpa",
					   "1.2.3.in-addr.arpa",
					   "1.2.3.4.5.in-addr.arpa",
					   "01.2.3.4.in-addr.arpa",
					   "1.2.3.400.in-addr.arpa",
					   "1.0.0.ip6.arpa",
					   "1.2.3.4.in-addr.arpa.example.com",
					   "" };
	char text[IP_TEXT];
	struct ip ip;

	CHECK(dns_reverse("4.30.2.100.in-addr.arpa", &ip) == 0);
	ip_text(&ip, text);
	CHECK_STR(text, "100.2.30.4");
	CHECK(dns_reverse(v6, &ip) == 0);
	ip_text(&ip, text);
	CHECK_STR(text, "2001:db8::1");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(dns_reverse(bad[i], &ip) == -EINVAL);
}

static void streams_are_split_into_messages(void)
{
	struct str msg;

	CHECK(dns_tcp_next(MSG("\0\3abc\0"), &msg) == 5 && str_is(msg, "abc"));
	CHECK(dns_tcp_next(MSG("\0\3ab"), &msg) == 0);
	CHECK(dns_tcp_next(MSG("\0"), &msg) == 0);
	CHECK(dns_tcp_next(MSG("\0\0x"), &msg) == 2 && msg.n == 0);
}

T_MAIN(T(a_query_is_parsed), T(truncated_and_trailing_bytes_are_refused),
       T(anything_but_one_question_is_refused), T(compression_is_refused),
       T(names_that_are_not_hosts_are_returned_empty), T(names_of_255_bytes_pass_and_of_256_fail),
       T(an_answer_has_question_and_records), T(a_refusal_says_why),
       T(bad_version_uses_both_halves_of_the_code), T(an_oversize_answer_is_cut_and_marked),
       T(ptr_answers_hold_names), T(reverse_names_are_addresses),
       T(streams_are_split_into_messages))
