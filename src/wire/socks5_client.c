/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socks5_client.h"

#include <errno.h>
#include <string.h>

enum { VERSION = 5, PASSWORD_VERSION = 1, CONNECT = 1 };
enum { METHOD_NONE = 0, METHOD_PASSWORD = 2, METHOD_NEITHER = 255 };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };

size_t socks_hello(bool has_password, uint8_t out[SOCKS_HELLO])
{
	out[0] = VERSION;
	out[1] = has_password ? 2 : 1;
	out[2] = METHOD_NONE;
	out[3] = METHOD_PASSWORD;
	return 2u + out[1];
}

static size_t put_short(uint8_t *out, struct str s)
{
	out[0] = (uint8_t)s.n;
	memcpy(out + 1, s.n ? s.p : "", s.n);
	return 1 + s.n;
}

size_t socks_password(struct str user, struct str password, uint8_t out[SOCKS_PASSWORD])
{
	size_t n = 1;

	if (!user.n || user.n > SOCKS_PASSWORD_MOST || password.n > SOCKS_PASSWORD_MOST)
		return 0;
	out[0] = PASSWORD_VERSION;
	n += put_short(out + n, user);
	return n + put_short(out + n, password);
}

size_t socks_ask(const char *name, uint16_t port, uint8_t out[SOCKS_ASK])
{
	static const uint8_t head[] = { VERSION, CONNECT, 0, TYPE_NAME };
	size_t n = sizeof head;

	memcpy(out, head, sizeof head);
	n += put_short(out + n, str_of(name));
	out[n] = (uint8_t)(port >> 8);
	out[n + 1] = (uint8_t)port;
	return n + 2;
}

int64_t socks_hello_answer(struct str in, bool *ret_wants_password)
{
	const uint8_t *b = (const uint8_t *)in.p;

	if (in.n < 2)
		return 0;
	if (b[0] != VERSION)
		return -EBADMSG;
	if (b[1] == METHOD_NEITHER)
		return -EACCES;
	if (b[1] != METHOD_NONE && b[1] != METHOD_PASSWORD)
		return -EBADMSG;
	*ret_wants_password = b[1] == METHOD_PASSWORD;
	return 2;
}

/* Some servers answer with the SOCKS version instead of this exchange's version. */
int64_t socks_password_answer(struct str in)
{
	if (in.n < 2)
		return 0;
	return in.p[1] == 0 ? 2 : -EACCES;
}

int64_t socks_ask_answer(struct str in)
{
	const uint8_t *b = (const uint8_t *)in.p;
	size_t need;

	if (in.n < 5)
		return 0;
	if (b[0] != VERSION)
		return -EBADMSG;
	if (b[1] != 0)
		return -ECONNREFUSED;
	need = b[3] == TYPE_IPV4 ? 10 : b[3] == TYPE_IPV6 ? 22 : b[3] == TYPE_NAME ? 7u + b[4] : 0;
	if (need == 0)
		return -EBADMSG;
	return in.n < need ? 0 : (int64_t)need;
}
