/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rate.h"

#include "base/clock.h"
#include "base/random.h"

enum { WAYS = 4 }; /* slots in which an address may be */

uint64_t pace_wait(const struct pace *b, uint64_t now_ns, uint64_t per_min, uint64_t burst,
		   uint64_t n)
{
	uint64_t each = 60 * NS_PER_S / per_min, missing, room;

	if (n > burst)
		return UINT64_MAX;
	missing = b->full_ns > now_ns ? b->full_ns - now_ns : 0;
	if (__builtin_mul_overflow(burst - n, each, &room) || missing <= room)
		return 0;
	return missing - room;
}

uint64_t pace_take(struct pace *b, uint64_t now_ns, uint64_t per_min, uint64_t burst, uint64_t n)
{
	uint64_t wait = pace_wait(b, now_ns, per_min, burst, n);

	if (wait)
		return wait;
	if (b->full_ns < now_ns)
		b->full_ns = now_ns;
	b->full_ns += n * (60 * NS_PER_S / per_min);
	return 0;
}

int strangers_init(struct strangers *s)
{
	return random_bytes(&s->key, sizeof s->key);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

/* The network of an address: IPv6 clients have a /64 at least. Never 0. */
static uint64_t stranger_id(const struct strangers *s, const struct ip *ip)
{
	size_t n = ip->len > 8 ? 8 : ip->len;
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | ip->b[i];
	return mix(mix(mix(s->key, v), n), s->key) | 1;
}

/* Its slot, or the one of its ways that has been quiet for longest. */
static size_t find_slot(const struct strangers *s, uint64_t who)
{
	size_t first = (who >> 20) % (STRANGERS / WAYS) * WAYS, best = first;

	for (size_t i = first; i < first + WAYS; i++) {
		if (s->slots[i].who == who)
			return i;
		if (s->slots[i].failures.full_ns < s->slots[best].failures.full_ns)
			best = i;
	}
	return best;
}

void strangers_note(struct strangers *s, const struct ip *ip, uint64_t now_ns)
{
	uint64_t who = stranger_id(s, ip);
	size_t i = find_slot(s, who);

	if (ip->len == 0)
		return;
	if (s->slots[i].who != who) {
		s->slots[i].who = who;
		s->slots[i].failures = (struct pace){ 0 };
	}
	(void)pace_take(&s->slots[i].failures, now_ns, STRANGER_PER_MIN, STRANGER_BURST, 1);
}

uint64_t strangers_wait(const struct strangers *s, const struct ip *ip, uint64_t now_ns)
{
	uint64_t who = stranger_id(s, ip);
	size_t i = find_slot(s, who);

	if (ip->len == 0 || s->slots[i].who != who)
		return 0;
	return pace_wait(&s->slots[i].failures, now_ns, STRANGER_PER_MIN, STRANGER_BURST, 1);
}
