/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's connection to its dialer: sends asks, receives answers (wire/dial_ask.h). Slots of
 * flows come first, then slots of DNS queries.
 */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "wire/dial_ask.h"

struct gateway;

struct asker {
	int fd;
	struct loop_io io;
	struct buf out; /* packets that the socket has not taken yet */
	uint32_t serial;
};

/* Takes fd. 0 or -errno. */
int ask_begin(struct gateway *g, int fd);
/* Send an ask with a serial number of its own, *ret_serial (never 0). 0 or -errno. */
int ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial);
/* Cancel the ask with this number and set the number to 0. Legal on 0. */
void ask_cancel(struct gateway *g, uint32_t slot, uint32_t *serial);
