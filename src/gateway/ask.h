/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's way to its dialer: asks go, answers come (wire/dial_ask.h). The slots of asks are
 * those of flows, and behind them those of DNS queries.
 */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "wire/dial_ask.h"

struct gateway;

struct asker {
	int fd;
	struct loop_io io;
	struct buf out; /* packets that do not go yet */
	uint32_t serial;
};

/* Takes fd. 0 or -errno. */
int ask_begin(struct gateway *g, int fd);
/* Send an ask with a serial number of its own, *ret_serial (never 0). 0 or -errno. */
int ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial);
/* The ask with this number is no longer wanted, and the number becomes 0. Legal on 0. */
void ask_cancel(struct gateway *g, uint32_t slot, uint32_t *serial);
