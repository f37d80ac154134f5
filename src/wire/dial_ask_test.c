/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dial_ask.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

enum { AT_PORT = 8, AT_KIND = 10, AT_PROTO, AT_ADDR_LEN, AT_ZERO, AT_ADDR = 16, AT_NAME = 32 };

static uint8_t packet[DIAL_ASK_SIZE];
static struct dial_ask got;

static void write_ask(enum dial_ask_kind kind, const char *name, uint16_t port)
{
	struct dial_ask a = { .kind = kind, .slot = 7, .serial = 9, .port = port };

	(void)str_copy(a.name, sizeof a.name, str_of(name));
	dial_ask_write(&a, packet);
}

static int read_ask(void)
{
	return dial_ask_read((struct str){ (char *)packet, sizeof packet }, &got);
}

static void a_request_round_trips(void)
{
	struct dial_ask a = { .kind = DIAL_ASK_DIAL, .slot = 3, .port = 443, .proto = 1 };

	write_ask(DIAL_ASK_DIAL, "a.example", 443);
	CHECK(read_ask() == 0 && got.kind == DIAL_ASK_DIAL && got.slot == 7 && got.serial == 9);
	CHECK(got.port == 443 && got.addr.len == 0);
	CHECK_STR(got.name, "a.example");
	a.addr = (struct ip){ 4, { 192, 0, 2, 1 } };
	dial_ask_write(&a, packet);
	CHECK(read_ask() == 0 && ip_eq(&got.addr, &a.addr) && got.proto == 1 && !got.name[0]);
	write_ask(DIAL_ASK_RESOLVE, "a.example", 0);
	CHECK(read_ask() == 0 && got.kind == DIAL_ASK_RESOLVE);
	write_ask(DIAL_ASK_CANCEL, "", 0);
	CHECK(read_ask() == 0 && got.kind == DIAL_ASK_CANCEL);
}

static void the_longest_name_fits_and_a_longer_one_does_not(void)
{
	char name[HOST_TEXT];

	for (int i = 0; i < HOST_TEXT - 1; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	name[HOST_TEXT - 1] = '\0';
	write_ask(DIAL_ASK_DIAL, name, 1);
	CHECK(read_ask() == 0);
	CHECK_STR(got.name, name);
	packet[AT_NAME + HOST_TEXT - 1] = 'a';
	CHECK(read_ask() == -EBADMSG);
}

static void a_name_that_is_not_canonical_is_refused(void)
{
	static const char *const names[] = { "A.example", "a.example.", "127.0.0.1", "a..b",
					     "a b",	  "0x7f.1",	"a/b" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		write_ask(DIAL_ASK_DIAL, names[i], 443);
		CHECK(read_ask() == -EBADMSG);
	}
	write_ask(DIAL_ASK_DIAL, "a.example", 443);
	packet[AT_NAME + 20] = 'x'; /* after the terminator */
	CHECK(read_ask() == -EBADMSG);
}

static void an_address_with_a_name_is_refused(void)
{
	write_ask(DIAL_ASK_DIAL, "a.example", 443);
	packet[AT_ADDR_LEN] = 4;
	packet[AT_ADDR] = 10;
	CHECK(read_ask() == -EBADMSG);
}

static void fields_foreign_to_the_kind_are_refused(void)
{
	write_ask(DIAL_ASK_DIAL, "a.example", 0);
	CHECK(read_ask() == -EBADMSG);
	write_ask(DIAL_ASK_DIAL, "", 443);
	CHECK(read_ask() == -EBADMSG);
	write_ask(DIAL_ASK_RESOLVE, "a.example", 443);
	CHECK(read_ask() == -EBADMSG);
	write_ask(DIAL_ASK_CANCEL, "a.example", 0);
	CHECK(read_ask() == -EBADMSG);
	write_ask(0, "a.example", 443);
	CHECK(read_ask() == -EBADMSG);
	write_ask(4, "a.example", 443);
	CHECK(read_ask() == -EBADMSG);
}

static void one_wrong_byte_is_refused(void)
{
	static const struct {
		int at;
		uint8_t value;
	} wrong[] = { { AT_ADDR_LEN, 5 }, { AT_ADDR, 1 }, { AT_PROTO, 3 },
		      { AT_PROTO, 16 },	  { AT_ZERO, 1 }, { 3, 1 } /* slot */ };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		write_ask(DIAL_ASK_DIAL, "a.example", 443);
		packet[wrong[i].at] = wrong[i].value;
		CHECK(read_ask() == -EBADMSG);
	}
}

static void another_size_is_refused(void)
{
	char longer[DIAL_ASK_SIZE + 1] = { 0 };

	write_ask(DIAL_ASK_DIAL, "a.example", 443);
	memcpy(longer, packet, sizeof packet);
	CHECK(dial_ask_read((struct str){ longer, DIAL_ASK_SIZE }, &got) == 0);
	CHECK(dial_ask_read((struct str){ longer, DIAL_ASK_SIZE + 1 }, &got) == -EBADMSG);
	CHECK(dial_ask_read((struct str){ longer, DIAL_ASK_SIZE - 1 }, &got) == -EBADMSG);
	CHECK(dial_ask_read(STR_NONE, &got) == -EBADMSG);
}

static void the_last_slot_is_accepted_and_one_past_it_is_not(void)
{
	struct dial_ask a = { .kind = DIAL_ASK_CANCEL, .slot = LIMIT_DIAL_ASKS - 1 };

	dial_ask_write(&a, packet);
	CHECK(read_ask() == 0 && got.slot == LIMIT_DIAL_ASKS - 1);
	a.slot++;
	dial_ask_write(&a, packet);
	CHECK(read_ask() == -EBADMSG);
}

static void an_answer_round_trips(void)
{
	struct dial_answer a = { .outcome = DIAL_DENIED, .slot = 5, .serial = 6, .detail = 3 }, b;
	uint8_t out[DIAL_ANSWER_SIZE];
	struct str in = { (char *)out, sizeof out };

	a.addr = (struct ip){ 16, { 0x20, 1 } };
	a.local = true;
	dial_answer_write(&a, out);
	CHECK(dial_answer_read(in, &b) == 0 && b.outcome == DIAL_DENIED && b.slot == 5);
	CHECK(b.serial == 6 && b.detail == 3 && b.local && ip_eq(&a.addr, &b.addr) && b.err == 0);
	a = (struct dial_answer){ .outcome = DIAL_FAILED, .err = ECONNREFUSED };
	dial_answer_write(&a, out);
	CHECK(dial_answer_read(in, &b) == 0 && b.err == ECONNREFUSED);
	a.err = 0; /* DIAL_FAILED needs an error number */
	dial_answer_write(&a, out);
	CHECK(dial_answer_read(in, &b) == -EBADMSG);
	in.n--;
	CHECK(dial_answer_read(in, &b) == -EBADMSG);
}

T_MAIN(T(a_request_round_trips), T(the_longest_name_fits_and_a_longer_one_does_not),
       T(a_name_that_is_not_canonical_is_refused), T(an_address_with_a_name_is_refused),
       T(fields_foreign_to_the_kind_are_refused), T(one_wrong_byte_is_refused),
       T(another_size_is_refused), T(the_last_slot_is_accepted_and_one_past_it_is_not),
       T(an_answer_round_trips))
