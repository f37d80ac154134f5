/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from the gateway's front to its dialer, and the dialer's answers. Each is one packet of
 * a fixed size on a SOCK_SEQPACKET socket. The front reads hostile bytes, so the dialer treats
 * every request as hostile.
 *
 * A slot has at most one request in progress. The serial number distinguishes the answer to a
 * cancelled request from the answer to the next request in the same slot.
 */
#pragma once

#include <stdint.h>

#include "base/limits.h"
#include "wire/host.h"

enum dial_ask_kind {
	DIAL_ASK_DIAL = 1, /* a name or an address, and a port: answered with a socket */
	DIAL_ASK_RESOLVE,  /* does this name exist? */
	DIAL_ASK_CANCEL,   /* cancel the request in this slot; no answer */
};

struct dial_ask {
	enum dial_ask_kind kind;
	uint32_t slot, serial;
	uint16_t port;
	uint8_t proto;	      /* enum policy_proto that the client spoke to the front; 0: none */
	struct ip addr;	      /* for DIAL without a name; else len 0 */
	char name[HOST_TEXT]; /* canonical, or "" */
};

enum dial_outcome {
	DIAL_DONE = 1, /* DIAL: connected, with the socket; RESOLVE: the name exists */
	DIAL_FAILED,   /* allowed, but failed with err */
	DIAL_DENIED,   /* denied by the policy: detail is enum policy_reason */
	DIAL_LIMITED,  /* over a limit of the policy: detail is enum meter_hit */
};

struct dial_answer {
	enum dial_outcome outcome;
	uint32_t slot, serial;
	int err; /* for DIAL_FAILED; positive */
	uint8_t detail;
	bool local;	/* addr belongs to the host itself */
	struct ip addr; /* the address dialled, or the first one denied; len 0: none */
};

enum { DIAL_ASK_SIZE = 288, DIAL_ANSWER_SIZE = 40 };

void dial_ask_write(const struct dial_ask *a, uint8_t out[DIAL_ASK_SIZE]);
/*
 * 0, or -EBADMSG for a name that is not canonical or anything else dial_ask_write() never writes.
 */
int dial_ask_read(struct str packet, struct dial_ask *ret);
void dial_answer_write(const struct dial_answer *a, uint8_t out[DIAL_ANSWER_SIZE]);
/* 0 or -EBADMSG. */
int dial_answer_read(struct str packet, struct dial_answer *ret);
