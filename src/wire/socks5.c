/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks5.h"

#include <errno.h>

enum {
	NO_AUTH = 0,
	NO_METHOD = 0xff,
	CMD_CONNECT = 1,
	TYPE_V4 = 1,
	TYPE_NAME = 3,
	TYPE_V6 = 4,
	FIXED = 4, /* version, command, reserved, type */
};

int64_t socks_greeting_parse(struct str in, bool *ret_ok)
{
	size_t methods;

	if (in.n > 0 && in.p[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (in.n < 2)
		return 0;
	methods = (uint8_t)in.p[1];
	if (methods == 0)
		return -EBADMSG;
	if (in.n - 2 < methods)
		return 0;
	*ret_ok = memchr(in.p + 2, NO_AUTH, methods) != NULL;
	return (int64_t)(2 + methods);
}

void socks_method_reply(bool ok, uint8_t out[SOCKS_METHOD_REPLY])
{
	out[0] = SOCKS_VERSION;
	out[1] = ok ? NO_AUTH : NO_METHOD;
}

/* Size of the address, 0 for more, -1 for an unknown type. */
static int address_size(struct str in)
{
	switch (in.p[3]) {
	case TYPE_V4:
		return 4;
	case TYPE_V6:
		return 16;
	case TYPE_NAME:
		return in.n > FIXED ? 1 + (uint8_t)in.p[FIXED] : 0;
	default:
		return -1;
	}
}

/* A name may also be an address as text; an IPv6 address then has no brackets. */
static int read_name(struct str text, struct host *ret)
{
	struct host h = { 0 };

	if (ip_parse(text, &h.ip) == 0) {
		*ret = h;
		return 0;
	}
	return host_parse(text, ret);
}

static int read_address(struct str in, int size, struct host *ret)
{
	const char *p = in.p + FIXED;

	if (in.p[3] == TYPE_NAME)
		return read_name((struct str){ p + 1, (size_t)size - 1 }, ret);
	*ret = (struct host){ .ip.len = (uint8_t)size };
	memcpy(ret->ip.b, p, (size_t)size);
	return 0;
}

int64_t socks_request_parse(struct str in, struct socks_request *ret, enum socks_rep *ret_rep)
{
	struct socks_request q = { 0 };
	const uint8_t *port;
	int size;

	*ret_rep = SOCKS_FAILED;
	if (in.n > 0 && in.p[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (in.n < FIXED)
		return 0;
	if (in.p[2] != 0)
		return -EBADMSG;
	if (in.p[1] != CMD_CONNECT) {
		*ret_rep = SOCKS_NO_COMMAND;
		return -EBADMSG;
	}
	size = address_size(in);
	*ret_rep = SOCKS_NO_ADDRESS;
	if (size < 0)
		return -EBADMSG;
	if (size == 0 || in.n < FIXED + (size_t)size + 2)
		return 0;
	if (read_address(in, size, &q.host) < 0)
		return -EBADMSG;
	port = (const uint8_t *)in.p + FIXED + size;
	q.port = (uint16_t)(port[0] << 8 | port[1]);
	if (q.port == 0)
		return -EBADMSG;
	*ret = q;
	*ret_rep = SOCKS_OK;
	return FIXED + size + 2;
}

size_t socks_reply(enum socks_rep rep, const struct ip *bound, uint16_t port,
		   uint8_t out[SOCKS_REPLY])
{
	static const struct ip any = { .len = 4 };
	const struct ip *ip = bound && bound->len ? bound : &any;
	size_t n = FIXED;

	out[0] = SOCKS_VERSION;
	out[1] = (uint8_t)rep;
	out[2] = 0;
	out[3] = ip->len == 4 ? TYPE_V4 : TYPE_V6;
	memcpy(out + n, ip->b, ip->len);
	n += ip->len;
	out[n++] = (uint8_t)(port >> 8);
	out[n++] = (uint8_t)port;
	return n;
}
