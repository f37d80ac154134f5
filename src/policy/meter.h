/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets and rates of one policy_limits, for a sandbox or a rule: what was used, and what may be
 * used now. The caller passes times as monotonic nanoseconds. A bucket holds one second's worth, at
 * least 16 KiB or one connection.
 */
#pragma once

#include "policy/policy.h"

struct bucket {
	uint64_t rate; /* per second; 0: no limit */
	uint64_t burst;
	uint64_t tokens; /* in 1/2^20 */
	uint64_t at_ns;
};

void bucket_init(struct bucket *b, uint64_t rate, uint64_t burst, uint64_t now_ns);
/* How much may be taken now; UINT64_MAX without a limit. */
uint64_t bucket_ready(struct bucket *b, uint64_t now_ns);
/* Take n; the bucket never falls below 0. */
void bucket_take(struct bucket *b, uint64_t n, uint64_t now_ns);
/* Nanoseconds until n tokens (at most the burst) are available; 0: now. */
uint64_t bucket_wait_ns(struct bucket *b, uint64_t n, uint64_t now_ns);

enum meter_dir { METER_UP, METER_DOWN };

/* Why something was refused. */
enum meter_hit {
	METER_OK,
	METER_BYTES,
	METER_CONNECTIONS, /* the budget is used up */
	METER_CONCURRENT,  /* too many open at once */
	METER_RATE,	   /* too many per second */
};

/* What was used of a budget. */
struct meter_used {
	uint64_t bytes[2];
	uint64_t connections;
};

struct meter {
	struct policy_limits limits;
	uint64_t bytes[2];
	uint64_t connections, open;
	struct bucket rate[2], connects, dns;
	struct meter_used *kept; /* a copy of the used amounts, always current; or NULL */
};

/* True if any limit is set. */
bool policy_has_limits(const struct policy_limits *l);
/* A new meter. If `used` is not NULL, its counts continue (after a policy change). */
void meter_init(struct meter *m, const struct policy_limits *limits, const struct meter *used,
		uint64_t now_ns);
/* Continue from the amounts in `kept`, and keep it current. It must outlive the meter. */
void meter_keep(struct meter *m, struct meter_used *kept);
/* A connection starts; counted if METER_OK. */
enum meter_hit meter_open(struct meter *m, uint64_t now_ns);
void meter_close(struct meter *m);
/* Uncount a connection that was refused for another reason. */
void meter_undo(struct meter *m);
/* How many bytes may pass now. If 0, *ret_hit is METER_BYTES (never again) or METER_RATE (wait). */
uint64_t meter_ready(struct meter *m, enum meter_dir dir, uint64_t now_ns, enum meter_hit *ret_hit);
void meter_add(struct meter *m, enum meter_dir dir, uint64_t n, uint64_t now_ns);
uint64_t meter_wait_ns(struct meter *m, enum meter_dir dir, uint64_t now_ns);
/* A DNS query: METER_OK or METER_RATE. */
enum meter_hit meter_dns(struct meter *m, uint64_t now_ns);
/* The key in `limits` that was hit: "bytes", "connections", ... */
const char *meter_hit_name(enum meter_hit hit);
