/* SPDX-License-Identifier: Apache-2.0 */
/* Askers take turns. An asker is in the list of a class while one of its lanes can start a job. */
#include <stdlib.h>
#include <string.h>

#include "ops/job/parts.h"

struct job_asker *asker_of(struct job_queue *q, const char *name)
{
	struct job_asker *a = q->askers;

	while (a && strcmp(a->name, name) != 0)
		a = a->next;
	if (a)
		return a;
	a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	(void)str_copy(a->name, sizeof a->name, str_of(name));
	for (int i = 0; i < JOB_CLASSES; i++)
		a->ready_end[i] = &a->ready[i];
	a->next = q->askers;
	q->askers = a;
	return a;
}

void asker_free_if_empty(struct job_queue *q, struct job_asker *a)
{
	struct job_asker **at = &q->askers;

	if (a->lanes)
		return;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	free(a);
}

/* One worker of each class stays free for others. */
static bool asker_may_run(const struct job_queue *q, const struct job_asker *a,
			  enum job_class class_)
{
	int most = q->most[class_];

	return !a->name[0] || a->running[class_] < (most > 1 ? most - 1 : 1);
}

void asker_list(struct job_queue *q, struct job_asker *a, enum job_class class_)
{
	if (a->listed[class_] || !a->ready[class_] || !asker_may_run(q, a, class_))
		return;
	a->listed[class_] = true;
	a->next_turn[class_] = NULL;
	*q->turn_end[class_] = a;
	q->turn_end[class_] = &a->next_turn[class_];
}

void asker_add_ready(struct job_queue *q, struct job_lane *l, enum job_class class_)
{
	struct job_asker *a = l->asker;

	l->next_ready = NULL;
	*a->ready_end[class_] = l;
	a->ready_end[class_] = &l->next_ready;
	asker_list(q, a, class_);
}

struct job_lane *asker_next(struct job_queue *q, enum job_class class_)
{
	struct job_asker *a = q->turn[class_];
	struct job_lane *l = a ? a->ready[class_] : NULL;

	if (!a)
		return NULL;
	q->turn[class_] = a->next_turn[class_];
	if (!q->turn[class_])
		q->turn_end[class_] = &q->turn[class_];
	a->listed[class_] = false;
	a->ready[class_] = l->next_ready;
	if (!a->ready[class_])
		a->ready_end[class_] = &a->ready[class_];
	l->ready = false;
	l->next_ready = NULL;
	return l;
}
