/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to a warden: one connection per question. Every function connects to the sandbox's
 * socket, says hello, asks, and waits for the answer. UNAVAILABLE where no warden answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/snapshots.h"
#include "wire/frame.h"
#include "wire/proto.h"

struct client_state {
	char state[16];
	int init_pid;
	uint32_t calls_running;
	uint64_t calls_total;
	uint64_t rss_kb;		    /* of all processes inside */
	uint64_t ttl_left_ms, idle_left_ms; /* UINT64_MAX: no limit */
	bool switching;			    /* a snapshot or rollback is under way */
	char top[24];			    /* its topmost layer, empty: none */
};

/* Ends the sandbox and waits until its warden is gone. */
int client_destroy(const struct state *s, const char *id, const char *reason, struct err *e);
/* A connected socket. The caller owns it. */
int client_dial(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* One that has said hello. */
int client_connect(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* MSG_C_HELLO. 0 or -errno. */
int client_put_hello(struct buf *b);
/* What MSG_C_STATE says. */
void client_take_state(const struct frame *f, struct client_state *ret);
/* Fill e from MSG_C_ERROR. Returns -1. */
int client_take_error(const struct frame *f, struct err *e);
/* The number of a field, or `otherwise`. */
uint64_t client_number(const struct frame *f, uint16_t tag, uint64_t otherwise);
/* The next thing that MSG_C_READY or MSG_C_STARTED warns of. body: that of the frame, consumed. */
bool client_next_warning(struct str *body, struct str *ret);
