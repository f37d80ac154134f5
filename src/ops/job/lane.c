/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes order the jobs of one asker for one sandbox. A lane is in the list of its head's class
 * while its head can start. Another asker's jobs for the same sandbox are in another lane: most
 * askers are refused there, and must not hold up the owner.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/job/parts.h"

/* Jobs without a sandbox wait in one lane per class. No sandbox key starts with a slash. */
static const char *const no_key[JOB_CLASSES] = { "/quick", "/long" };

static struct job_lane **lane_slot(struct job_queue *q, const struct job_asker *a, const char *key)
{
	unsigned h = 5381;
	struct job_lane **at;

	for (const char *c = key; *c; c++)
		h = h * 33 + (unsigned char)*c;
	for (at = &q->lanes[h % ARRAY_LEN(q->lanes)]; *at; at = &(*at)->next)
		if ((*at)->asker == a && strcmp((*at)->key, key) == 0)
			break;
	return at;
}

struct job_lane *lane_of(struct job_queue *q, enum job_class class_, const char *asker,
			 const char *key)
{
	const char *name = key && key[0] ? key : no_key[class_];
	struct job_asker *a = asker_of(q, asker ? asker : "");
	struct job_lane **at, *lane;

	if (!a)
		return NULL;
	at = lane_slot(q, a, name);
	lane = *at;
	if (lane)
		return lane;
	lane = calloc(1, sizeof *lane);
	if (!lane) {
		asker_free_if_empty(q, a);
		return NULL;
	}
	(void)str_copy(lane->key, sizeof lane->key, str_of(name));
	lane->asker = a;
	a->lanes++;
	*at = lane;
	return lane;
}

void lane_free_if_empty(struct job_queue *q, struct job_lane *l)
{
	struct job_asker *a = l->asker;
	struct job_lane **at;

	if (l->head || l->shared || l->exclusive || l->ready)
		return;
	at = lane_slot(q, a, l->key);
	*at = l->next;
	free(l);
	a->lanes--;
	asker_free_if_empty(q, a);
}

static bool lane_can_begin(const struct job_lane *l)
{
	if (!l->head || l->exclusive)
		return false;
	return !(l->head->kind->flags & JOB_EXCLUSIVE) || l->shared == 0;
}

static void lane_changed(struct job_queue *q, struct job_lane *l)
{
	if (l->ready || !lane_can_begin(l))
		return;
	l->ready = true;
	asker_add_ready(q, l, job_class_of(l->head->kind));
}

void lane_put(struct job_queue *q, struct job *j, bool first)
{
	struct job_lane *l = j->lane;

	j->next = first ? l->head : NULL;
	j->prev = first ? NULL : l->tail;
	*(j->prev ? &j->prev->next : &l->head) = j;
	*(j->next ? &j->next->prev : &l->tail) = j;
	l->waiting++;
	l->asker->waiting++;
	q->waiting++;
	q->waiting_of[job_class_of(j->kind)]++;
	lane_changed(q, l);
}

void lane_take(struct job_queue *q, struct job *j)
{
	struct job_lane *l = j->lane;

	*(j->prev ? &j->prev->next : &l->head) = j->next;
	*(j->next ? &j->next->prev : &l->tail) = j->prev;
	j->next = j->prev = NULL;
	l->waiting--;
	l->asker->waiting--;
	q->waiting--;
	q->waiting_of[job_class_of(j->kind)]--;
	lane_changed(q, l);
	lane_free_if_empty(q, l);
}

void lane_enter(struct job *j)
{
	j->lane->asker->running[job_class_of(j->kind)]++;
	if (j->kind->flags & JOB_EXCLUSIVE)
		j->lane->exclusive = true;
	else
		j->lane->shared++;
}

void lane_leave(struct job_queue *q, struct job *j)
{
	enum job_class class_ = job_class_of(j->kind);
	struct job_lane *l = j->lane;

	if (j->kind->flags & JOB_EXCLUSIVE)
		l->exclusive = false;
	else
		l->shared--;
	l->asker->running[class_]--;
	asker_list(q, l->asker, class_);
	lane_changed(q, l);
	lane_free_if_empty(q, l);
}

struct job *lane_next(struct job_queue *q, enum job_class class_)
{
	struct job_lane *l;

	while ((l = asker_next(q, class_))) {
		struct job_asker *a = l->asker;
		struct job *j = l->head;

		if (!lane_can_begin(l) || job_class_of(j->kind) != class_) {
			/* The head has changed since the lane was listed. */
			lane_changed(q, l);
			asker_list(q, a, class_);
			lane_free_if_empty(q, l);
			continue;
		}
		lane_enter(j);
		lane_take(q, j);
		asker_list(q, a, class_); /* after all others */
		return j;
	}
	return NULL;
}

void lanes_free(struct job_queue *q)
{
	for (size_t i = 0; i < ARRAY_LEN(q->lanes); i++)
		while (q->lanes[i]) {
			struct job_lane *l = q->lanes[i];

			q->lanes[i] = l->next;
			free(l);
		}
	while (q->askers) {
		struct job_asker *a = q->askers;

		q->askers = a->next;
		free(a);
	}
}
