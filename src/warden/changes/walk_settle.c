/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that wait until the trace has every event so far. */
#include "warden/changes/walk_settle.h"

#include "warden/changes/walk.h"
#include "warden/warden.h"

enum { SETTLES = 256 };

struct settle {
	struct client *client;
	uint32_t chan;
	uint64_t walk; /* number of the walk to wait for */
	struct settle *next;
};

static int say_settled(struct client *c, uint32_t chan)
{
	struct trace *t = &c->w->trace;
	char hex[SHA256_HEX];
	int r = trace_flush(t);

	if (r < 0)
		return r;
	sha256_hex(t->head, hex);
	return CONN_SAY(&c->conn, MSG_C_SETTLED, chan, { TAG_SEQ, t->seq, NULL },
			{ TAG_HASH, 0, hex });
}

static void answer_one(struct settle *s)
{
	struct client *c = s->client;
	struct err e = { 0 };
	int r = say_settled(c, s->chan);

	if (r < 0) {
		(void)err_sys(&e, -r, "write the trace");
		(void)client_error(c, s->chan, &e, STAGE_SETUP);
	}
	if (c->version < 3)
		conn_hold(&c->conn, false);
}

static void free_first(struct walks *s, struct settle **at)
{
	struct settle *gone = *at;

	*at = gone->next;
	s->nsettles--;
	free(gone);
}

void settle_answer(struct warden *w)
{
	struct walks *s = &w->walks;

	/* Requests are in the order of their walks. */
	while (s->settles && !s->old && (s->settles->walk <= s->done || !s->now.changes)) {
		answer_one(s->settles);
		free_first(s, &s->settles);
	}
}

static bool has_all(const struct warden *w)
{
	const struct walks *s = &w->walks;

	return !s->old && (!s->now.changes || (!s->job && s->now.ncalls == 0));
}

int walk_settle(struct client *c, uint32_t chan, struct err *e)
{
	struct walks *s = &c->w->walks;
	struct settle **end = &s->settles, *new;

	if (has_all(c->w)) {
		int r = say_settled(c, chan);

		return r < 0 ? err_sys(e, -r, "answer") : 0;
	}
	if (s->nsettles == SETTLES)
		return err_set(e, ERR_LIMIT, "%d requests are waiting for the trace", SETTLES);
	new = malloc(sizeof *new);
	if (!new)
		return err_sys(e, ENOMEM, "wait for the trace");
	*new = (struct settle){ .client = c, .chan = chan, .walk = s->begun + 1 };
	while (*end)
		end = &(*end)->next;
	*end = new;
	s->nsettles++;
	/* A client of version 2 takes the next answer for this one. */
	if (c->version < 3)
		conn_hold(&c->conn, true);
	walk_want(c->w);
	return 0;
}

void walk_forget(struct warden *w, const struct client *c)
{
	struct settle **at = &w->walks.settles;

	while (*at)
		if (!c || (*at)->client == c)
			free_first(&w->walks, at);
		else
			at = &(*at)->next;
}
