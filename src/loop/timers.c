/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of a loop: a pairing heap. The links are in the timers themselves, so setting a timer
 * cannot fail. Setting takes constant time, stopping O(log n) on average.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "loop/loop.h"

static bool is_sooner(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

/* Merge two roots without siblings. Either may be NULL. */
static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b)
{
	struct loop_timer *root, *below;

	if (!a || !b)
		return a ? a : b;
	root = is_sooner(a, b) ? a : b;
	below = root == a ? b : a;
	below->next = root->child;
	if (below->next)
		below->next->prev = below;
	below->prev = root;
	root->child = below;
	return root;
}

/* Merge a list of siblings into one heap: pairs from the left, then all results from the right. */
static struct loop_timer *meld_list(struct loop_timer *list)
{
	struct loop_timer *pairs = NULL, *root = NULL;

	while (list) {
		struct loop_timer *a = list, *b = a->next, *pair;

		list = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		pair = meld(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct loop_timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		root = meld(root, pair);
	}
	return root;
}

void loop_timer_stop(struct loop *l, struct loop_timer *t)
{
	struct loop_timer *rest;

	if (t->at_ns == 0)
		return;
	rest = meld_list(t->child);
	if (t == l->timers) {
		l->timers = rest;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		l->timers = meld(l->timers, rest);
	}
	t->at_ns = 0;
	t->child = t->next = t->prev = NULL;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ns,
		    void (*fn)(struct loop_timer *))
{
	loop_timer_stop(l, t);
	if (__builtin_add_overflow(clock_mono_ns(), delay_ns, &t->at_ns))
		t->at_ns = UINT64_MAX;
	t->order = ++l->timers_set;
	t->fn = fn;
	l->timers = meld(l->timers, t);
}
