/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a change of generation is done before it is asked for:
 *
 * - once there was one, the driver's part that is the same whatever will be asked for, whenever
 *   nothing runs;
 * - where a client says that it is about to ask for one that seals, all but the moving of files:
 *   the next generation is mounted, over uppers that nobody changes, while the client writes its
 *   journal. It is dropped as soon as something may change there, or its client goes.
 */
#include <string.h>

#include "sys/voltree.h"
#include "warden/call.h"
#include "warden/generation.h"

static void on_ahead(struct loop_timer *timer)
{
	struct warden *w = container_of(timer, struct warden, ahead_timer);

	if (w->state == SANDBOX_RUNNING && !w->turn && !w->coming && !w->unsealed && !w->running)
		ns_driver.renew_ahead(&w->cell, &w->spec);
}

/* On the next turn of the loop: who waits for an answer of this one goes first. */
void generation_ahead(struct warden *w)
{
	if (w->switched && !w->running)
		loop_timer_set(&w->loop, &w->ahead_timer, 0, on_ahead);
}

static struct turn *turn_new(struct client *c)
{
	struct turn *t = calloc(1, sizeof *t);
	struct warden *w = c->w;

	if (!t)
		return NULL;
	*t = (struct turn){ .w = w, .client = c, .nlayers = w->spec.nlayers };
	memcpy(t->layers, w->layers, sizeof t->layers);
	(void)str_copy(t->seal, sizeof t->seal, STR("?")); /* whatever it will be called */
	cell_next_init(&t->other);
	return t;
}

void generation_soon(struct client *c)
{
	struct warden *w = c->w;
	struct err ignored = { 0 };

	if (w->state != SANDBOX_RUNNING || w->turn || w->coming || w->unsealed || w->running ||
	    !turn_is_alone(w))
		return;
	/* Whoever asks for it will have merged some: there must be room for one more. */
	if (w->spec.nlayers >= CELL_LAYERS)
		return;
	w->coming = turn_new(c);
	if (!w->coming)
		return;
	w->coming->looked = true;
	if (turn_find_same(w, w->coming) || turn_make_next(w, w->coming, &ignored) < 0) {
		generation_stay(w); /* who asks for it will be told */
		return;
	}
	/* A call often comes next. */
	if (w->spare_group < 0)
		call_spare_group(w);
}

void generation_stay(struct warden *w)
{
	struct turn *t = w->coming;

	if (!t)
		return;
	w->coming = NULL;
	cell_next_done(&t->other);
	(void)voltree_remove(w->disk_fd, "next");
	free(t);
}

static bool fits(const struct warden *w, const struct turn *t)
{
	bool same = w->coming->client == t->client && t->seal[0] && t->nlayers == w->spec.nlayers;

	for (int j = 0; j < t->nlayers && same; j++)
		same = strcmp(t->layers[j], w->layers[j]) == 0;
	return same;
}

void turn_take_coming(struct warden *w, struct turn *t)
{
	struct turn *made = w->coming;

	if (!made)
		return;
	if (!fits(w, t)) {
		generation_stay(w);
		return;
	}
	t->other = made->other;
	memcpy(t->same, made->same, sizeof t->same);
	t->looked = t->made = true;
	w->coming = NULL;
	free(made);
}
