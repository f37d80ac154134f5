/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dial_ask.h"

#include <errno.h>
#include <string.h>

/* Both ends run on one machine: numbers are in its byte order. Unused bytes are 0. */
struct ask_packet {
	uint32_t slot, serial;
	uint16_t port;
	uint8_t kind, proto, addr_len, zero[3];
	uint8_t addr[16];
	char name[256];
};
_Static_assert(sizeof(struct ask_packet) == DIAL_ASK_SIZE, "no hidden bytes");

struct answer_packet {
	uint32_t slot, serial;
	int32_t err;
	uint8_t outcome, detail, local, addr_len;
	uint8_t addr[16];
	uint8_t zero[8];
};
_Static_assert(sizeof(struct answer_packet) == DIAL_ANSWER_SIZE, "no hidden bytes");

static bool addr_read(uint8_t len, const uint8_t bytes[16], struct ip *ret)
{
	if (len != 0 && len != 4 && len != 16)
		return false;
	*ret = (struct ip){ .len = len };
	memcpy(ret->b, bytes, len);
	return true;
}

void dial_ask_write(const struct dial_ask *a, uint8_t out[DIAL_ASK_SIZE])
{
	struct ask_packet p = { .slot = a->slot,
				.serial = a->serial,
				.port = a->port,
				.kind = (uint8_t)a->kind,
				.proto = a->proto,
				.addr_len = a->addr.len };

	memcpy(p.addr, a->addr.b, a->addr.len);
	memcpy(p.name, a->name, strnlen(a->name, sizeof a->name - 1));
	memcpy(out, &p, sizeof p);
}

static bool name_read(const char text[256], char out[HOST_TEXT])
{
	size_t n = strnlen(text, HOST_TEXT - 1);

	if (text[n] != '\0')
		return false;
	out[0] = '\0';
	if (n == 0)
		return true;
	return host_name((struct str){ text, n }, out) == 0 && strcmp(out, text) == 0;
}

static bool has_its_parts(const struct dial_ask *a)
{
	bool name = a->name[0] != '\0', addr = a->addr.len != 0;

	switch (a->kind) {
	case DIAL_ASK_DIAL:
		return name != addr && a->port != 0;
	case DIAL_ASK_RESOLVE:
		return name && !addr && a->port == 0 && a->proto == 0;
	case DIAL_ASK_CANCEL:
		return !name && !addr && a->port == 0 && a->proto == 0;
	}
	return false;
}

/* Exactly one bit of enum policy_proto, or 0. */
static bool is_proto(uint8_t proto)
{
	return proto < 16 && (proto & (proto - 1)) == 0;
}

int dial_ask_read(struct str packet, struct dial_ask *ret)
{
	uint8_t again[DIAL_ASK_SIZE];
	struct ask_packet p;
	struct dial_ask a;

	if (packet.n != sizeof p)
		return -EBADMSG;
	memcpy(&p, packet.p, sizeof p);
	a = (struct dial_ask){ .kind = (enum dial_ask_kind)p.kind,
			       .slot = p.slot,
			       .serial = p.serial,
			       .port = p.port,
			       .proto = p.proto };
	if (p.slot >= LIMIT_DIAL_ASKS || !is_proto(p.proto) ||
	    !addr_read(p.addr_len, p.addr, &a.addr) || !name_read(p.name, a.name) ||
	    !has_its_parts(&a))
		return -EBADMSG;
	dial_ask_write(&a, again); /* unused bytes must be 0 */
	if (memcmp(again, packet.p, sizeof again) != 0)
		return -EBADMSG;
	*ret = a;
	return 0;
}

void dial_answer_write(const struct dial_answer *a, uint8_t out[DIAL_ANSWER_SIZE])
{
	struct answer_packet p = { .slot = a->slot,
				   .serial = a->serial,
				   .err = a->err,
				   .outcome = (uint8_t)a->outcome,
				   .detail = a->detail,
				   .local = a->local,
				   .addr_len = a->addr.len };

	memcpy(p.addr, a->addr.b, a->addr.len);
	memcpy(out, &p, sizeof p);
}

int dial_answer_read(struct str packet, struct dial_answer *ret)
{
	struct answer_packet p;
	struct dial_answer a;

	if (packet.n != sizeof p)
		return -EBADMSG;
	memcpy(&p, packet.p, sizeof p);
	a = (struct dial_answer){ .outcome = (enum dial_outcome)p.outcome,
				  .slot = p.slot,
				  .serial = p.serial,
				  .err = p.err,
				  .detail = p.detail,
				  .local = p.local != 0 };
	if (p.slot >= LIMIT_DIAL_ASKS || p.outcome < DIAL_DONE || p.outcome > DIAL_LIMITED ||
	    p.err < 0 || (p.outcome == DIAL_FAILED) != (p.err != 0) ||
	    !addr_read(p.addr_len, p.addr, &a.addr))
		return -EBADMSG;
	*ret = a;
	return 0;
}
