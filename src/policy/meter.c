/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/meter.h"

#include <string.h>

#include "base/clock.h"

enum { UNIT_BITS = 20, BYTES_BURST = 16 * 1024 };

/* Higher rates would overflow the tokens; 16 TB/s is no limit. */
#define RATE_MAX (1ull << 43)

void bucket_init(struct bucket *b, uint64_t rate, uint64_t burst, uint64_t now_ns)
{
	if (rate > RATE_MAX)
		rate = RATE_MAX;
	if (burst > RATE_MAX)
		burst = RATE_MAX;
	*b = (struct bucket){ rate, burst, burst << UNIT_BITS, now_ns };
}

/* The clock advances only by the time of the tokens given, so fractions are not lost. */
static void refill(struct bucket *b, uint64_t now_ns)
{
	uint64_t full = b->burst << UNIT_BITS;
	uint64_t passed = now_ns > b->at_ns ? now_ns - b->at_ns : 0;
	unsigned __int128 per_s = (unsigned __int128)b->rate << UNIT_BITS;
	unsigned __int128 more = passed * per_s / NS_PER_S;

	if (more >= full - b->tokens) {
		b->tokens = full;
		b->at_ns += passed;
		return;
	}
	b->tokens += (uint64_t)more;
	b->at_ns += (uint64_t)((more * NS_PER_S + per_s - 1) / per_s);
}

uint64_t bucket_ready(struct bucket *b, uint64_t now_ns)
{
	if (b->rate == 0)
		return UINT64_MAX;
	refill(b, now_ns);
	return b->tokens >> UNIT_BITS;
}

void bucket_take(struct bucket *b, uint64_t n, uint64_t now_ns)
{
	if (b->rate == 0)
		return;
	refill(b, now_ns);
	b->tokens -= n > b->tokens >> UNIT_BITS ? b->tokens : n << UNIT_BITS;
}

uint64_t bucket_wait_ns(struct bucket *b, uint64_t n, uint64_t now_ns)
{
	uint64_t want;
	unsigned __int128 ns;

	if (b->rate == 0)
		return 0;
	refill(b, now_ns);
	want = (n < b->burst ? n : b->burst) << UNIT_BITS;
	if (b->tokens >= want)
		return 0;
	ns = (unsigned __int128)(want - b->tokens) * NS_PER_S;
	ns = (ns >> UNIT_BITS) / b->rate + 1;
	return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static uint64_t at_least(uint64_t rate, uint64_t least)
{
	return rate > least ? rate : least;
}

bool policy_has_limits(const struct policy_limits *l)
{
	static const struct policy_limits none;

	return memcmp(l, &none, sizeof none) != 0;
}

void meter_init(struct meter *m, const struct policy_limits *limits, const struct meter *used,
		uint64_t now_ns)
{
	struct meter new = { .limits = *limits };

	if (used) {
		new.bytes[METER_UP] = used->bytes[METER_UP];
		new.bytes[METER_DOWN] = used->bytes[METER_DOWN];
		new.connections = used->connections;
		new.open = used->open;
	}
	bucket_init(&new.rate[METER_UP], limits->rate_up, at_least(limits->rate_up, BYTES_BURST),
		    now_ns);
	bucket_init(&new.rate[METER_DOWN], limits->rate_down,
		    at_least(limits->rate_down, BYTES_BURST), now_ns);
	bucket_init(&new.connects, limits->rate_connections, at_least(limits->rate_connections, 1),
		    now_ns);
	bucket_init(&new.dns, limits->rate_dns, at_least(limits->rate_dns, 1), now_ns);
	*m = new;
}

void meter_keep(struct meter *m, struct meter_used *kept)
{
	m->bytes[METER_UP] = kept->bytes[METER_UP];
	m->bytes[METER_DOWN] = kept->bytes[METER_DOWN];
	m->connections = kept->connections;
	m->kept = kept;
}

enum meter_hit meter_open(struct meter *m, uint64_t now_ns)
{
	if (m->limits.connections && m->connections >= m->limits.connections)
		return METER_CONNECTIONS;
	if (m->limits.concurrent && m->open >= m->limits.concurrent)
		return METER_CONCURRENT;
	if (bucket_ready(&m->connects, now_ns) < 1)
		return METER_RATE;
	bucket_take(&m->connects, 1, now_ns);
	m->connections++;
	if (m->kept)
		m->kept->connections = m->connections;
	m->open++;
	return METER_OK;
}

void meter_undo(struct meter *m)
{
	meter_close(m);
	m->connections--;
	if (m->kept)
		m->kept->connections = m->connections;
}

void meter_close(struct meter *m)
{
	if (m->open)
		m->open--;
}

/* The rest of a budget; without a budget, everything. */
static uint64_t left(uint64_t budget, uint64_t used)
{
	if (budget == 0)
		return UINT64_MAX;
	return budget > used ? budget - used : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t budget_left(const struct meter *m, enum meter_dir dir)
{
	uint64_t one = dir == METER_UP ? m->limits.bytes_up : m->limits.bytes_down;

	return min_u64(left(one, m->bytes[dir]),
		       left(m->limits.bytes, m->bytes[METER_UP] + m->bytes[METER_DOWN]));
}

uint64_t meter_ready(struct meter *m, enum meter_dir dir, uint64_t now_ns, enum meter_hit *ret_hit)
{
	uint64_t budget = budget_left(m, dir);
	uint64_t ready = bucket_ready(&m->rate[dir], now_ns);

	*ret_hit = budget == 0 ? METER_BYTES : ready == 0 ? METER_RATE : METER_OK;
	return min_u64(budget, ready);
}

void meter_add(struct meter *m, enum meter_dir dir, uint64_t n, uint64_t now_ns)
{
	m->bytes[dir] += n;
	if (m->kept)
		m->kept->bytes[dir] = m->bytes[dir];
	bucket_take(&m->rate[dir], n, now_ns);
}

uint64_t meter_wait_ns(struct meter *m, enum meter_dir dir, uint64_t now_ns)
{
	enum { USEFUL = 4096 }; /* fewer bytes do not justify a wake-up */

	return bucket_wait_ns(&m->rate[dir], USEFUL, now_ns);
}

enum meter_hit meter_dns(struct meter *m, uint64_t now_ns)
{
	if (bucket_ready(&m->dns, now_ns) < 1)
		return METER_RATE;
	bucket_take(&m->dns, 1, now_ns);
	return METER_OK;
}

const char *meter_hit_name(enum meter_hit hit)
{
	switch (hit) {
	case METER_OK:
		return "ok";
	case METER_BYTES:
		return "bytes";
	case METER_CONNECTIONS:
		return "connections";
	case METER_CONCURRENT:
		return "concurrent";
	case METER_RATE:
		return "rate";
	}
	return "";
}
