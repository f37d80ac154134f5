/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_table.h"

#include <errno.h>
#include <stdlib.h>

enum { MIN_SIZE = 16 };

static uint32_t slot(const struct proc_table *t, int pid)
{
	return (uint32_t)pid & (t->size - 1);
}

static void link_proc(struct proc_table *t, struct proc *p)
{
	struct proc **o = &t->outside[slot(t, p->pid)], **i = &t->inside[slot(t, p->inside)];

	p->next_outside = *o;
	*o = p;
	p->next_inside = *i;
	*i = p;
}

static int resize(struct proc_table *t, uint32_t size)
{
	struct proc_table old = *t;
	struct proc **chains = calloc(2 * (size_t)size, sizeof(struct proc *));

	if (!chains)
		return -ENOMEM;
	t->outside = chains;
	t->inside = chains + size;
	t->size = size;
	for (uint32_t i = 0; i < old.size; i++) {
		struct proc *next;

		for (struct proc *p = old.outside[i]; p; p = next) {
			next = p->next_outside;
			link_proc(t, p);
		}
	}
	free(old.outside);
	return 0;
}

int proc_table_add(struct proc_table *t, struct proc *p)
{
	if (t->count >= t->max)
		return -ENOSPC;
	if (t->count >= t->size) {
		int r = resize(t, t->size ? t->size * 2 : MIN_SIZE);

		if (r < 0)
			return r;
	}
	link_proc(t, p);
	t->count++;
	return 0;
}

void proc_table_del(struct proc_table *t, struct proc *p)
{
	struct proc **at = &t->outside[slot(t, p->pid)];

	while (*at != p)
		at = &(*at)->next_outside;
	*at = p->next_outside;
	at = &t->inside[slot(t, p->inside)];
	while (*at != p)
		at = &(*at)->next_inside;
	*at = p->next_inside;
	if (--t->count == 0) {
		free(t->outside);
		*t = (struct proc_table){ .max = t->max };
	} else if (t->size > MIN_SIZE && t->count < t->size / 8) {
		(void)resize(t, t->size / 2); /* on failure the larger table works too */
	}
}

struct proc *proc_table_find(const struct proc_table *t, int pid)
{
	struct proc *p = t->size ? t->outside[slot(t, pid)] : NULL;

	while (p && (p->pid != pid || p->parked_ns))
		p = p->next_outside;
	return p;
}

struct proc *proc_table_find_inside(const struct proc_table *t, int inside)
{
	struct proc *oldest = NULL;

	if (t->size == 0)
		return NULL;
	for (struct proc *p = t->inside[slot(t, inside)]; p; p = p->next_inside)
		if (p->inside == inside && !p->has_status &&
		    (!oldest || p->exec_event < oldest->exec_event))
			oldest = p;
	return oldest;
}
