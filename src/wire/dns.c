/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns.h"

#include <errno.h>
#include <stdio.h>

enum {
	HEADER = 12,
	LABEL_MAX = 63,
	NAME_MAX_WIRE = 255,
	FLAG_QR = 0x8000,
	FLAG_TC = 0x0200,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	OPCODE = 0x7800,
	RCODE_LOW = 0x0f,
	EDNS_DO = 0x8000,
	OPT_SIZE = 11, /* an OPT record without options */
	OPTION_HEAD = 4,
	OPTION_EDE = 15,
	EDE_TEXT = 200,
};

/* Read a message from the front. */
struct cursor {
	const uint8_t *p;
	size_t n, at;
};

static bool cursor_take(struct cursor *c, size_t n, const uint8_t **ret)
{
	if (c->n - c->at < n)
		return false;
	*ret = c->p + c->at;
	c->at += n;
	return true;
}

static bool take_u16(struct cursor *c, uint16_t *ret)
{
	const uint8_t *p;

	if (!cursor_take(c, 2, &p))
		return false;
	*ret = (uint16_t)(p[0] << 8 | p[1]);
	return true;
}

/*
 * The name of a question. Nothing precedes it that a compression pointer could refer to, so
 * compression is refused, and with it every loop. text gets the labels with dots. *ret_odd: a label
 * has a byte that text cannot represent.
 */
static bool take_name(struct cursor *c, char text[NAME_MAX_WIRE], bool *ret_odd)
{
	size_t start = c->at, n = 0;
	const uint8_t *len, *label;

	*ret_odd = false;
	for (;;) {
		if (!cursor_take(c, 1, &len) || *len > LABEL_MAX)
			return false;
		if (*len == 0)
			break;
		if (!cursor_take(c, *len, &label) || c->at - start >= NAME_MAX_WIRE)
			return false;
		for (size_t i = 0; i < *len; i++) {
			*ret_odd |= label[i] == '.' || label[i] == '\0';
			text[n++] = (char)label[i];
		}
		text[n++] = '.';
	}
	text[n ? n - 1 : 0] = '\0';
	return true;
}

static int take_question(struct cursor *c, struct dns_query *q)
{
	char text[NAME_MAX_WIRE];
	size_t start = c->at;
	bool odd;

	if (!take_name(c, text, &odd) || !take_u16(c, &q->type) || !take_u16(c, &q->class))
		return DNS_FORMERR;
	q->question_len = (uint16_t)(c->at - start);
	memcpy(q->question, c->p + start, q->question_len);
	if (odd || host_name(str_of(text), q->name) < 0)
		q->name[0] = '\0';
	return DNS_OK;
}

/* Check that the options of OPT are complete. We ignore their content. */
static bool options_ok(struct cursor *c, size_t end)
{
	uint16_t code, len;
	const uint8_t *data;

	while (c->at < end)
		if (!take_u16(c, &code) || !take_u16(c, &len) || !cursor_take(c, len, &data) ||
		    c->at > end)
			return false;
	return true;
}

static int take_opt(struct cursor *c, struct dns_query *q)
{
	uint16_t type, size, high, flags, len;
	const uint8_t *root;

	if (!cursor_take(c, 1, &root) || *root != 0 || !take_u16(c, &type) || type != DNS_OPT ||
	    !take_u16(c, &size) || !take_u16(c, &high) || !take_u16(c, &flags) ||
	    !take_u16(c, &len) || c->n - c->at < len || !options_ok(c, c->at + len))
		return DNS_FORMERR;
	q->edns = true;
	q->dnssec_ok = flags & EDNS_DO;
	q->udp_size = size < DNS_UDP_PLAIN ? DNS_UDP_PLAIN
		      : size > DNS_UDP_MAX ? DNS_UDP_MAX
					   : size;
	/* Only version 0 exists. The high byte matters only in an answer. */
	return (high & 0xff) ? DNS_BADVERS : DNS_OK;
}

int dns_query_parse(struct str msg, struct dns_query *ret)
{
	struct cursor c = { (const uint8_t *)msg.p, msg.n, 0 };
	uint16_t flags = 0, questions = 0, answers = 0, authority = 0, extra = 0;
	int r;

	memset(ret, 0, sizeof *ret);
	ret->udp_size = DNS_UDP_PLAIN;
	if (!take_u16(&c, &ret->id) || !take_u16(&c, &flags) || !take_u16(&c, &questions) ||
	    !take_u16(&c, &answers) || !take_u16(&c, &authority) || !take_u16(&c, &extra))
		return -EBADMSG;
	if (flags & FLAG_QR)
		return -EBADMSG;
	ret->recursion = flags & FLAG_RD;
	if (flags & OPCODE)
		return DNS_NOTIMP;
	if (questions != 1 || answers || authority || extra > 1 || (flags & (FLAG_TC | RCODE_LOW)))
		return DNS_FORMERR;
	r = take_question(&c, ret);
	if (r == DNS_OK && extra)
		r = take_opt(&c, ret);
	if (r == DNS_OK && c.at != c.n)
		r = DNS_FORMERR;
	return r;
}

static int digit(char c, int base)
{
	int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : base;

	return v < base ? v : -1;
}

/* "4.3.2.1": the address backwards. */
static int reverse_v4(struct str labels, struct ip *ret)
{
	char forward[16] = "";
	size_t end = labels.n, n = 0;

	if (labels.n >= sizeof forward)
		return -EINVAL;
	for (size_t i = labels.n + 1; i-- > 0;) {
		if (i > 0 && labels.p[i - 1] != '.')
			continue;
		memcpy(forward + n, labels.p + i, end - i);
		n += end - i;
		if (i == 0)
			break;
		forward[n++] = '.';
		end = i - 1;
	}
	if (ip_parse((struct str){ forward, n }, ret) < 0 || ret->len != 4)
		return -EINVAL;
	return 0;
}

static int reverse_v6(struct str labels, struct ip *ret)
{
	struct ip ip = { .len = 16 };

	if (labels.n != 32 * 2 - 1)
		return -EINVAL;
	for (size_t i = 0; i < 32; i++) {
		int v = digit(labels.p[i * 2], 16);

		if (v < 0 || (i < 31 && labels.p[i * 2 + 1] != '.'))
			return -EINVAL;
		ip.b[15 - i / 2] |= (uint8_t)(i % 2 ? v << 4 : v);
	}
	*ret = ip;
	return 0;
}

int dns_reverse(const char *name, struct ip *ret)
{
	static const char v4[] = ".in-addr.arpa", v6[] = ".ip6.arpa";
	size_t n = strlen(name);
	struct ip ip;
	int r = -EINVAL;

	if (n > sizeof v4 - 1 && strcmp(name + n - (sizeof v4 - 1), v4) == 0)
		r = reverse_v4((struct str){ name, n - (sizeof v4 - 1) }, &ip);
	else if (n > sizeof v6 - 1 && strcmp(name + n - (sizeof v6 - 1), v6) == 0)
		r = reverse_v6((struct str){ name, n - (sizeof v6 - 1) }, &ip);
	if (r == 0)
		*ret = ip;
	return r;
}

static void put_u16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void dns_reply_begin(struct dns_reply *r, const struct dns_query *q, uint8_t *out, size_t cap)
{
	*r = (struct dns_reply){ .out = out, .cap = cap, .edns = q->edns };
	memset(out, 0, HEADER);
	put_u16(out, q->id);
	put_u16(out + 2, FLAG_QR | FLAG_RA | (q->recursion ? FLAG_RD : 0));
	put_u16(out + 4, q->question_len ? 1 : 0);
	memcpy(out + HEADER, q->question, q->question_len);
	r->len = HEADER + q->question_len;
	/* Keep room for OPT. */
	if (r->edns)
		r->cap -= OPT_SIZE;
}

/* A record for the queried name, which follows the header directly. */
static void put_record(struct dns_reply *r, unsigned type, uint32_t ttl_s, const uint8_t *data,
		       size_t n)
{
	enum { FIXED = 12, POINTER = 0xc000 | HEADER, IN = 1 };
	uint8_t *p = r->out + r->len;

	if (r->full || r->cap - r->len < FIXED + n) {
		r->full = true;
		return;
	}
	put_u16(p, POINTER);
	put_u16(p + 2, type);
	put_u16(p + 4, IN);
	put_u16(p + 6, ttl_s >> 16);
	put_u16(p + 8, ttl_s & 0xffff);
	put_u16(p + 10, (unsigned)n);
	memcpy(p + FIXED, data, n);
	r->len += FIXED + n;
	r->answers++;
}

void dns_reply_ip(struct dns_reply *r, const struct ip *ip, uint32_t ttl_s)
{
	if (ip->len)
		put_record(r, ip->len == 4 ? DNS_A : DNS_AAAA, ttl_s, ip->b, ip->len);
}

void dns_reply_ptr(struct dns_reply *r, const char *name, uint32_t ttl_s)
{
	uint8_t wire[NAME_MAX_WIRE + 1];
	char clean[HOST_TEXT];
	size_t n = 0;

	if (host_name(str_of(name), clean) < 0)
		return;
	for (const char *p = clean; *p;) {
		size_t len = strcspn(p, ".");

		wire[n++] = (uint8_t)len;
		memcpy(wire + n, p, len);
		n += len;
		p += len + (p[len] == '.');
	}
	wire[n++] = 0;
	put_record(r, DNS_PTR, ttl_s, wire, n);
}

/* OPT, with the extended error if it fits. cap includes OPT_SIZE again. */
static void put_opt(struct dns_reply *r, unsigned rcode, enum dns_ede ede, struct str text)
{
	size_t room = r->cap - r->len - OPT_SIZE, n = text.n < EDE_TEXT ? text.n : EDE_TEXT;
	uint8_t *p = r->out + r->len;

	memset(p, 0, OPT_SIZE);
	put_u16(p + 1, DNS_OPT);
	put_u16(p + 3, DNS_UDP_MAX);
	p[5] = (uint8_t)(rcode >> 4);
	r->len += OPT_SIZE;
	if (ede == DNS_EDE_NONE || room < OPTION_HEAD + 2)
		return;
	if (n > room - OPTION_HEAD - 2)
		n = room - OPTION_HEAD - 2;
	put_u16(p + 9, (unsigned)(OPTION_HEAD + 2 + n));
	p += OPT_SIZE;
	put_u16(p, OPTION_EDE);
	put_u16(p + 2, (unsigned)(2 + n));
	put_u16(p + 4, (unsigned)ede);
	if (n)
		memcpy(p + OPTION_HEAD + 2, text.p, n);
	r->len += OPTION_HEAD + 2 + n;
}

size_t dns_reply_end(struct dns_reply *r, enum dns_rcode rcode, enum dns_ede ede, struct str text)
{
	if (r->edns) {
		r->cap += OPT_SIZE;
		put_opt(r, rcode, ede, text);
		put_u16(r->out + 10, 1);
	}
	if (r->full)
		r->out[2] |= FLAG_TC >> 8;
	r->out[3] |= (uint8_t)(rcode & RCODE_LOW);
	put_u16(r->out + 6, r->answers);
	return r->len;
}

size_t dns_tcp_next(struct str in, struct str *ret_msg)
{
	size_t n;

	if (in.n < 2)
		return 0;
	n = (size_t)((uint8_t)in.p[0] << 8 | (uint8_t)in.p[1]);
	if (in.n - 2 < n)
		return 0;
	*ret_msg = (struct str){ in.p + 2, n };
	return n + 2;
}
