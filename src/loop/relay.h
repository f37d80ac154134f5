/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies bytes both ways between two sockets, with half-closes and back-pressure. A hostile process
 * may share one of them and make it blocking, so every call passes a non-blocking flag.
 */
#pragma once

#include "loop/loop.h"

enum { RELAY_CHUNK = 32 * 1024 };

struct relay_end {
	struct loop_io io;
	struct relay *r;
	int fd;
	bool eof, shut;
	size_t from, to; /* range of `data` still to be sent to the other end */
	char *data;
};

struct relay {
	struct loop *loop;
	struct relay_end end[2];
	void (*ended)(struct relay *r);
};

/* Takes both descriptors. `ended` runs once, when both directions have ended; it frees r. */
int relay_begin(struct relay *r, struct loop *l, int a, int b, void (*ended)(struct relay *r));
void relay_done(struct relay *r);
