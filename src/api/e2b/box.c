/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b/proc.h"
#include "link/decode.h"
#include "ops/job/handover.h"

/* A machine under load may need seconds for it. */
enum { INFO_MS = 10000 };

static struct box *find_any(struct front *f, const char *id)
{
	for (struct box *b = f->boxes; b; b = b->next)
		if (strcmp(b->id, id) == 0)
			return b;
	return NULL;
}

struct box *box_find(struct front *f, const char *id)
{
	struct box *b = find_any(f, id);

	return b && b->link ? b : NULL;
}

static void add_want(struct box *b, struct box_want *w)
{
	w->box = b;
	w->next = b->wants;
	b->wants = w;
}

static void remove_want(struct box_want *w)
{
	struct box *b = TAKE_PTR(w->box);

	for (struct box_want **at = b ? &b->wants : NULL; at && *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

static void tell_wants(struct box *b, const struct err *why)
{
	while (b->wants) {
		struct box_want *w = b->wants;

		box_want_drop(w);
		w->done(w, NULL, why);
	}
}

static int add_call(struct box *b, struct box_call *c)
{
	c->box = b;
	c->next = b->calls;
	b->calls = c;
	return 0;
}

int box_call(struct box *b, struct box_call *c, const struct call_spec *spec,
	     const struct link_call_ops *ops)
{
	int r = link_call(b->link, &c->call, spec, ops);

	return r < 0 ? r : add_call(b, c);
}

int box_attach(struct box *b, struct box_call *c, const struct call_attach *how,
	       const struct link_call_ops *ops)
{
	int r = link_attach(b->link, &c->call, how, ops);

	return r < 0 ? r : add_call(b, c);
}

void box_call_done(struct box_call *c)
{
	struct box_call **at;

	if (!c->box)
		return;
	for (at = &c->box->calls; *at && *at != c; at = &(*at)->next)
		;
	if (*at)
		*at = c->next;
	c->box = NULL;
	link_call_drop(&c->call);
}

static void tell_calls(struct box *b, const struct err *why)
{
	while (b->calls) {
		struct box_call *c = b->calls;

		box_call_done(c);
		c->gone(c, why);
	}
}

void box_port_add(struct box *b, struct box_port *p)
{
	p->box = b;
	p->next = b->ports;
	b->ports = p;
}

void box_port_remove(struct box_port *p)
{
	struct box *b = TAKE_PTR(p->box);

	for (struct box_port **at = b ? &b->ports : NULL; at && *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			return;
		}
}

static void tell_ports(struct box *b)
{
	while (b->ports) {
		struct box_port *p = b->ports;

		box_port_remove(p);
		p->gone(p);
	}
}

/* Its processes and calls hear that it is gone. */
static void box_free(struct box *b, const struct err *why)
{
	struct box **at = &b->front->boxes;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	if (b->job)
		job_drop(b->job);
	tell_wants(b, why);
	tell_calls(b, why);
	tell_ports(b);
	procs_free(b);
	link_ask_drop(&b->restoring);
	link_free(b->link);
	free(b);
}

static void on_link_closed(struct link *l, const struct err *why)
{
	box_free(link_owner(l), why);
}

static int on_info(struct link_ask *a, const struct frame *f)
{
	struct box_want *w = container_of(a, struct box_want, ask);
	struct sandbox_status s;

	if (f->type != MSG_C_STATE)
		return -1;
	decode_status(f, &s);
	w->running = strcmp(s.state, "running") == 0;
	w->paused = strcmp(s.state, "paused") == 0;
	return 0;
}

static void not_running(struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, "The sandbox was not found");
	(void)err_code(e, "sandbox.not_running", NULL);
}

static void ask_info(struct box *b, struct box_want *w);

/* Look again: it runs now, or it is told why not. */
static void on_woken(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct box_want *w = ctx;
	struct box *b = w->box;

	(void)a;
	w->waking = NULL;
	remove_want(w);
	if (why)
		w->done(w, NULL, why);
	else
		ask_info(b, w);
}

static bool start_waking(struct box_want *w)
{
	const struct job_spec spec = {
		.kind = "e2b.wake", .key = w->box->id, .done = on_woken, .ctx = w
	};
	struct err ignored = { 0 };

	w->uses = false;
	w->waking = job_start(&w->front->queue, &spec, &ignored);
	return w->waking != NULL;
}

static void on_info_done(struct link_ask *a, const struct err *why)
{
	struct box_want *w = container_of(a, struct box_want, ask);
	struct box *b = w->box;
	struct err e = { 0 };

	if (!why && w->paused && w->uses && b->resumes && (w->proven || !b->token_for_ports) &&
	    start_waking(w))
		return;
	remove_want(w);
	not_running(&e);
	if (why)
		e = *why;
	w->done(w, !why && w->running ? b : NULL, &e);
}

static void ask_info(struct box *b, struct box_want *w)
{
	struct err e = { 0 };
	int r;

	w->ask = (struct link_ask){ .answer = on_info, .done = on_info_done };
	add_want(b, w);
	r = link_ask(b->link, &w->ask, MSG_C_INFO, STR_NONE, INFO_MS);
	if (r == 0)
		return;
	remove_want(w);
	(void)err_sys(&e, -r, "ask sandbox '%s'", b->id);
	w->done(w, NULL, &e);
}

static const struct link_ops link_ops = { .closed = on_link_closed };

/* Where its key was revoked, nobody may use it but the host's user. */
static bool is_revoked(const struct box *b, struct err *ret)
{
	if (!b->owner[0] || auth_find(&b->front->auth, b->owner))
		return false;
	(void)err_set(ret, ERR_NOT_ALLOWED, "the key of this sandbox was revoked");
	return true;
}

/* What e2b_link() says of the sandbox: its owner, a '~' where it resumes by use,
 * and a '+' where its ports need the token. */
static void read_said(struct box *b, struct str more)
{
	b->token_for_ports = more.n && more.p[more.n - 1] == '+';
	if (b->token_for_ports)
		more.n--;
	b->resumes = more.n && more.p[more.n - 1] == '~';
	if (b->resumes)
		more.n--;
	(void)str_copy(b->owner, sizeof b->owner, more);
}

static void on_link(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct job_answer answer = a ? *a : (struct job_answer){ 0 };
	struct box *b = ctx;
	struct box_want *wants;
	struct job_link said;
	struct err e = { 0 };

	b->job = NULL;
	if (why) {
		box_free(b, why);
		return;
	}
	if (job_link_read(answer.out, &said) == 0)
		read_said(b, said.more);
	if (job_take_link(&b->front->loop, &answer, &link_ops, b, &b->link, &e) < 0 ||
	    is_revoked(b, &e)) {
		box_free(b, &e);
		return;
	}
	link_keep_alive(b->link);
	/* The warden answers in order: what it lists is known before anybody hears that it runs. */
	procs_restore(b);
	for (wants = TAKE_PTR(b->wants); wants;) {
		struct box_want *w = wants;

		wants = w->next;
		ask_info(b, w);
	}
}

static int box_open(struct front *f, const char *id, bool proven, struct box **ret, struct err *e)
{
	struct box *b = calloc(1, sizeof *b);
	/* Whose sandbox it is will be known later. Strangers do not hold up those with a token. */
	const struct job_spec spec = { .kind = "e2b.link",
				       .key = id,
				       .asker = proven ? "/tokens" : "/strangers",
				       .done = on_link,
				       .ctx = b };

	if (!b)
		return err_sys(e, ENOMEM, "open sandbox '%s'", id);
	b->front = f;
	(void)str_copy(b->id, sizeof b->id, str_of(id));
	b->job = job_start(&f->queue, &spec, e);
	if (!b->job) {
		free(b);
		return -1;
	}
	b->next = f->boxes;
	f->boxes = b;
	*ret = b;
	return 0;
}

void box_want(struct front *f, const char *id, struct box_want *w)
{
	struct box *b = find_any(f, id);
	struct err e = { 0 };

	w->front = f;
	w->running = false;
	if (b && b->link) {
		ask_info(b, w);
		return;
	}
	if (!b && box_open(f, id, w->proven, &b, &e) < 0) {
		w->done(w, NULL, &e);
		return;
	}
	add_want(b, w);
}

void box_want_drop(struct box_want *w)
{
	link_ask_drop(&w->ask);
	if (w->waking)
		job_drop(TAKE_PTR(w->waking));
	remove_want(w);
}

void boxes_check_keys(struct front *f)
{
	struct err why = { 0 };

	for (struct box *b = f->boxes, *next; b; b = next) {
		next = b->next;
		if (is_revoked(b, &why))
			box_free(b, &why);
	}
}

void boxes_free(struct front *f)
{
	struct err why = { 0 };

	(void)err_set(&why, ERR_UNAVAILABLE, "the server stops");
	while (f->boxes)
		box_free(f->boxes, &why);
}
