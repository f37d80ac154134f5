/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5, client side: CONNECT to a name, with or without a password (RFC 1928, RFC 1929). */
#pragma once

#include <stdint.h>

#include "wire/host.h"

enum { SOCKS_PASSWORD_MOST = 255, SOCKS_PASSWORD = 3 + 2 * SOCKS_PASSWORD_MOST };
enum { SOCKS_HELLO = 4, SOCKS_ASK = HOST_TEXT + 7 };

/* Write the requests; each function returns the length. */
size_t socks_hello(bool has_password, uint8_t out[SOCKS_HELLO]);
/* 0 if the user is empty or one of them is too long. */
size_t socks_password(struct str user, struct str password, uint8_t out[SOCKS_PASSWORD]);
size_t socks_ask(const char *name, uint16_t port, uint8_t out[SOCKS_ASK]);

/*
 * Parse the answers. Returns the size, 0 for more, -EACCES if the proxy does not admit us,
 * -ECONNREFUSED, or -EBADMSG.
 */
int64_t socks_hello_answer(struct str in, bool *ret_wants_password);
int64_t socks_password_answer(struct str in);
int64_t socks_ask_answer(struct str in);
