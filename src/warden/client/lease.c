/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/client/lease.h"

#include <errno.h>
#include <stdio.h>

/* A waiting client; first come, first served. */
struct lease_wait {
	struct lease_wait *next;
	struct client *client;
	uint32_t chan;
	struct loop_timer deadline;
};

static int refuse_busy(const struct warden *w, struct err *e)
{
	char pid[16];

	(void)snprintf(pid, sizeof pid, "%d", lease_holder(w));
	if (w->lease)
		(void)err_set(e, ERR_CONFLICT, "the sandbox is busy: process %s is changing it",
			      pid);
	else
		(void)err_set(e, ERR_CONFLICT,
			      "the sandbox is busy: a snapshot or rollback is under way");
	return err_code(e, "sandbox.busy", w->lease ? pid : NULL);
}

int lease_holder(const struct warden *w)
{
	return w->lease ? w->lease->pid : 0;
}

static void give(struct client *c, uint32_t chan)
{
	c->w->lease = c;
	(void)conn_send(&c->conn, MSG_C_LEASED, chan, STR_NONE);
}

static void wait_free(struct warden *w, struct lease_wait *wait)
{
	for (struct lease_wait **at = &w->lease_waits; *at; at = &(*at)->next)
		if (*at == wait) {
			*at = wait->next;
			break;
		}
	loop_timer_stop(&w->loop, &wait->deadline);
	free(wait);
}

void lease_next(struct warden *w)
{
	struct lease_wait *first = w->lease_waits;

	if (!first || w->lease || w->gen_switch)
		return;
	give(first->client, first->chan);
	wait_free(w, first);
}

static void on_deadline(struct loop_timer *t)
{
	struct lease_wait *wait = container_of(t, struct lease_wait, deadline);
	struct client *c = wait->client;
	struct err e = { 0 };

	(void)refuse_busy(c->w, &e);
	(void)client_error(c, wait->chan, &e, STAGE_SETUP);
	wait_free(c->w, wait);
}

static bool waits(const struct client *c)
{
	for (const struct lease_wait *l = c->w->lease_waits; l; l = l->next)
		if (l->client == c)
			return true;
	return false;
}

static int wait_for_it(struct client *c, uint32_t chan, uint64_t timeout_ms, struct err *e)
{
	struct lease_wait *wait = calloc(1, sizeof *wait);
	struct lease_wait **end = &c->w->lease_waits;

	if (!wait)
		return err_sys(e, ENOMEM, "wait for the lease");
	wait->client = c;
	wait->chan = chan;
	while (*end)
		end = &(*end)->next;
	*end = wait;
	if (timeout_ms)
		loop_timer_set(&c->w->loop, &wait->deadline, timeout_ms * NS_PER_MS, on_deadline);
	return 0;
}

int lease_ask(struct client *c, const struct frame *f, struct err *e)
{
	struct warden *w = c->w;
	struct str body = f->body;
	uint64_t timeout_ms = 0;
	struct field field;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_TIMEOUT_MS &&
		    (field_u64(field, &timeout_ms) < 0 || timeout_ms > UINT64_MAX / NS_PER_S))
			return err_set(e, ERR_INVALID, "bad request: the time limit of a lease");
	if (w->lease == c || waits(c))
		return err_set(e, ERR_INVALID, "the client asked for the lease before");
	if (!w->lease && !w->gen_switch && !w->lease_waits) {
		give(c, f->chan);
		return 0;
	}
	return wait_for_it(c, f->chan, timeout_ms, e);
}

void lease_end(struct client *c)
{
	struct warden *w = c->w;
	struct lease_wait *next;

	for (struct lease_wait *l = w->lease_waits; l; l = next) {
		next = l->next;
		if (l->client == c)
			wait_free(w, l);
	}
	if (w->lease == c)
		w->lease = NULL;
	lease_next(w);
}

/* A client of version 2 has no lease: it may act while no client has the lease. */
int lease_check(const struct client *c, struct err *e)
{
	const struct warden *w = c->w;

	if (w->lease == c || (!w->lease && c->version < 3))
		return 0;
	if (w->lease)
		return refuse_busy(w, e);
	(void)err_set(e, ERR_CONFLICT, "the client must ask for the lease first");
	return err_code(e, "lease.missing", NULL);
}
