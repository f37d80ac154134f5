/* SPDX-License-Identifier: Apache-2.0 */
/* The server's secret, and the tokens that are made of it. None of them is stored. */
#pragma once

#include <stdint.h>

#include "api/control.h"
#include "base/err.h"
#include "base/str.h"
#include "store/state.h"

enum { TOKEN_SIZE = 33 };

/* Read STATE/server.key, or make it. */
int server_key_load(const struct state *s, uint8_t ret[SERVER_SECRET], struct err *e);
/* The token for one use ("envd") of one sandbox: 32 hexadecimal digits. */
void server_token(const uint8_t secret[SERVER_SECRET], const char *use, const char *id,
		  char ret[TOKEN_SIZE]);
