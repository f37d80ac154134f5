/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for a gateway after every turn of its loop. */
#include "flow_world.h"
#include "fuzz.h"
#include "wire/sniff.h"

static bool is_current(const struct policy_rule *r)
{
	const struct policy *p = world.g->policy;

	return !r || (r >= p->rules && r < p->rules + p->nrules);
}

static void check_flow(const struct flow *f)
{
	FUZZ_CHECK(f->side[UP].fd >= 0);
	FUZZ_CHECK(f->nfirst <= SNIFF_LINE && (f->first || !f->nfirst));
	FUZZ_CHECK(is_current(f->rule));
	FUZZ_CHECK(f->state != FLOW_PASS || f->side[DOWN].fd >= 0);
	for (int dir = UP; dir <= DOWN; dir++) {
		const struct way *w = &f->way[dir];

		FUZZ_CHECK(!w->pipe || (w->held > 0 && w->held <= LIMIT_NET_PIPE));
	}
	FUZZ_CHECK(!f->http || f->http->n <= HTTP_PENDING);
	for (unsigned i = 0; f->http && i < f->http->n; i++)
		FUZZ_CHECK(is_current(f->http->pending[(f->http->first + i) % HTTP_PENDING].rule));
}

static void link_server(const struct flow *f)
{
	uint16_t port = f->side[DOWN].fd >= 0 ? world_port(f->side[DOWN].fd, false) : 0;

	for (int i = 0; port && i < WORLD_PEERS; i++) {
		struct world_server *s = &world.servers[i];

		if (s->fd < 0 || s->port != port || s->client)
			continue;
		for (int k = 0; k < WORLD_PEERS; k++)
			if (world.clients[k].fd >= 0 && world.clients[k].port == f->from.port) {
				s->client = &world.clients[k];
				s->generation = s->client->generation;
			}
	}
}

/* Each open connection is counted once, by the rule that it has now. */
static void check_meters(void)
{
	struct gateway *g = world.g;

	for (size_t r = 0; r < g->policy->nrules; r++) {
		const struct meter *m = meter_of(g, &g->policy->rules[r]);
		uint64_t n = 0;

		for (uint32_t i = 0; m && i < g->top; i++)
			n += g->flows[i] && g->flows[i]->counted &&
			     g->flows[i]->rule == &g->policy->rules[r];
		FUZZ_CHECK(!m || m->open == n);
	}
}

void world_check(void)
{
	const struct gateway *g = world.g;
	uint32_t flows = 0, waiting = 0, throttled = 0, counted = 0;

	for (uint32_t i = 0; i < g->top; i++) {
		const struct flow *f = g->flows[i];

		if (!f)
			continue;
		FUZZ_CHECK(f->slot == i && f->g == g);
		flows++;
		waiting += f->deadline_ns != 0;
		throttled += f->way[UP].throttled + f->way[DOWN].throttled;
		counted += f->counted;
		check_flow(f);
		link_server(f);
	}
	FUZZ_CHECK(flows == g->nflows && flows + g->nfree == g->top);
	FUZZ_CHECK(waiting == g->nwaiting && throttled == g->nthrottled);
	FUZZ_CHECK(counted == g->total.open);
	FUZZ_CHECK(!waiting || g->tick.at_ns);
	check_meters();
}
