/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paces, and the strangers: addresses whose requests failed to show who they are. All of it has a
 * fixed size. A pace is a token bucket of 8 bytes, for rates below one per second.
 */
#pragma once

#include "wire/ip.h"

/* Zero: nothing was taken yet. */
struct pace {
	uint64_t full_ns; /* when all tokens are there again */
};

/*
 * Take n tokens of a pace that holds `burst` and gets `per_min` each minute (1 or more). Returns 0,
 * or the nanoseconds until they are there; then none is taken. UINT64_MAX: never, n is too many.
 */
uint64_t pace_take(struct pace *b, uint64_t now_ns, uint64_t per_min, uint64_t burst, uint64_t n);
/* The same, but takes none. */
uint64_t pace_wait(const struct pace *b, uint64_t now_ns, uint64_t per_min, uint64_t burst,
		   uint64_t n);

enum { STRANGERS = 4096, STRANGER_BURST = 60, STRANGER_PER_MIN = 30 };

struct strangers {
	uint64_t key; /* random: nobody can choose addresses that share a slot */
	struct {
		uint64_t who; /* 0: free */
		struct pace failures;
	} slots[STRANGERS];
};

int strangers_init(struct strangers *s);
/* A request of this address failed. */
void strangers_note(struct strangers *s, const struct ip *ip, uint64_t now_ns);
/* 0: its requests are looked at. Else the nanoseconds until they are. */
uint64_t strangers_wait(const struct strangers *s, const struct ip *ip, uint64_t now_ns);
