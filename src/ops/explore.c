/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/explore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "link/wait.h"
#include "ops/destroy.h"
#include "ops/fork.h"

enum { NEVER_RUN = 125, CANNOT_EXECUTE = 126, NO_SUCH_COMMAND = 127 };

struct exploring;

/* The call in one branch. */
struct runner {
	struct exploring *all;
	struct branch *b;
	struct link *link;
	struct link_call call;
	uint64_t start_ns;
	bool running;
};

struct exploring {
	const struct explore_spec *spec;
	struct explored *x;
	struct runner *v; /* one per branch */
	unsigned left;
	bool done; /* all have ended */
};

void explored_done(struct explored *x)
{
	free(x->v);
	*x = (struct explored){ .winner = -1 };
}

/* --- the commands --- */

static void runner_over(struct runner *r)
{
	struct exploring *all = r->all;

	r->running = false;
	r->b->duration_us = (clock_mono_ns() - r->start_ns) / NS_PER_US;
	all->done = --all->left == 0;
	if (all->spec->ended)
		all->spec->ended(all->spec->ctx, r->b);
}

/* The warden ends a call when its client disconnects. */
static void stop_all(struct exploring *all)
{
	for (unsigned i = 0; i < all->x->n; i++) {
		struct runner *r = &all->v[i];

		if (!r->running)
			continue;
		link_call_drop(&r->call);
		r->b->code = -1;
		runner_over(r);
	}
}

static void on_output(struct link_call *call, enum call_stream stream, struct str data)
{
	struct runner *r = container_of(call, struct runner, call);
	const struct explore_spec *spec = r->all->spec;

	if (spec->output)
		spec->output(spec->ctx, r->b, stream, data);
	link_call_taken(call, stream, data.n);
}

static void take_result(struct branch *b, const struct call_result *res)
{
	struct str fields = res->fields;
	struct field f;

	b->code = res->code;
	(void)str_copy(b->reason, sizeof b->reason, str_of(res->reason));
	while (field_next(&fields, &f) > 0)
		b->denied += f.tag == TAG_DENIED;
}

static int code_of(const struct err *why)
{
	if (strcmp(why->code, "exec.failed") == 0)
		return why->sys == ENOENT ? NO_SUCH_COMMAND : CANNOT_EXECUTE;
	return why->kind == ERR_UNAVAILABLE ? -1 : NEVER_RUN;
}

static void on_ended(struct link_call *call, const struct call_result *res, const struct err *why)
{
	struct runner *r = container_of(call, struct runner, call);
	struct exploring *all = r->all;

	if (res) {
		take_result(r->b, res);
	} else {
		r->b->why = *why;
		r->b->code = code_of(why);
	}
	runner_over(r);
	if (r->b->code != 0 || all->x->winner >= 0)
		return;
	all->x->winner = r->b->number - 1;
	if (all->spec->first_success)
		stop_all(all);
}

static int runner_start(struct runner *r, struct cay *c, struct err *e)
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };
	const struct explore_spec *spec = r->all->spec;
	char number[40];
	const char *const env[] = { number, NULL };
	const struct call_spec call = {
		.op = CALL_EXEC, .argv = spec->argv, .env = env, .timeout_ms = spec->timeout_ms
	};
	int k;

	(void)snprintf(number, sizeof number, "CAY_FORK=%d", r->b->number);
	if (link_connect(&c->wait, &c->state, r->b->id, &r->link, e) < 0)
		return -1;
	r->start_ns = clock_mono_ns();
	k = link_call(r->link, &r->call, &call, &ops);
	if (k < 0)
		return err_sys(e, -k, "run the command in fork %d", r->b->number);
	r->running = true;
	link_call_eof(&r->call);
	return 0;
}

static int run_all(struct cay *c, const struct explore_spec *spec, struct explored *x,
		   struct err *e)
{
	struct exploring all = { .spec = spec, .x = x, .left = x->n };
	int r = 0;

	all.v = calloc(x->n, sizeof *all.v);
	if (!all.v)
		return err_sys(e, ENOMEM, "explore");
	for (unsigned i = 0; i < x->n; i++) {
		all.v[i].all = &all;
		all.v[i].b = &x->v[i];
	}
	for (unsigned i = 0; i < x->n && r == 0; i++) {
		/* While this call connects, earlier calls may end. */
		r = runner_start(&all.v[i], c, e);
		if (r == 0 && spec->first_success && x->winner >= 0)
			stop_all(&all);
	}
	if (r == 0)
		r = cay_wait(c, &all.done, "the exploration", e);
	if (r < 0)
		stop_all(&all);
	for (unsigned i = 0; i < x->n; i++)
		link_free(all.v[i].link);
	free(all.v);
	return r;
}

/* --- before and after --- */

static int add_branch(void *ctx, unsigned i, const struct creation *born)
{
	struct explored *x = ctx;

	x->v[i].number = (int)i + 1;
	(void)str_copy(x->v[i].id, sizeof x->v[i].id, str_of(born->row.id));
	x->n = i + 1;
	return 0;
}

static int measure(struct cay *c, const struct fork_source *from, struct explored *x, struct err *e)
{
	auto_done(diff_view_done) struct diff_view old = { 0 };
	struct snapshot_row was = { 0 };

	(void)str_copy(was.id, sizeof was.id, str_of(from->holder));
	(void)str_copy(was.sandbox, sizeof was.sandbox, str_of(from->of.recipe_of));
	(void)str_copy(was.top, sizeof was.top, str_of(from->of.top));
	if (diff_view_open_snapshot(c, &was, &old, e) < 0)
		return -1;
	for (unsigned i = 0; i < x->n; i++) {
		auto_done(diff_view_done) struct diff_view now = { 0 };

		if (diff_view_open_any(c, x->v[i].id, &now, e) < 0 ||
		    diff_sum(&old, &now, &x->v[i].totals, e) < 0)
			return -1;
	}
	return 0;
}

int op_explore_keep(struct cay *c, const struct explored *x, struct err *e)
{
	struct err one = { 0 };
	int r = 0;

	for (unsigned i = 0; i < x->n; i++)
		if (!x->v[i].kept && op_destroy(c, x->v[i].id, &one) < 0) {
			*e = one;
			r = -1;
		}
	return r;
}

static int check_spec(const struct explore_spec *spec, struct err *e)
{
	if (spec->count < 1 || spec->count > EXPLORE_MOST) {
		(void)err_set(e, ERR_INVALID, "%u: at most %d", spec->count, EXPLORE_MOST);
		return err_field(e, "count");
	}
	return spec->argv && spec->argv[0] ? 0
					   : err_set(e, ERR_INVALID, "there is no command to run");
}

/* Cancellation works only while commands run. Forks are created and removed completely. */
static int explore_from(struct cay *c, const struct fork_source *from,
			const struct explore_spec *spec, struct explored *x, struct err *e)
{
	const struct fork_spec f = { .count = spec->count,
				     .name = spec->name,
				     .numbered = true,
				     .fn = add_branch,
				     .ctx = x };
	struct waiter wait = c->wait;
	struct err ignored = { 0 };
	int r;

	c->wait.cancel_fd = FD_NONE;
	c->wait.deadline_ns = 0;
	r = fork_from(c, from, &f, e);
	c->wait = wait;
	if (r == 0)
		r = run_all(c, spec, x, e);
	c->wait.cancel_fd = FD_NONE;
	c->wait.deadline_ns = 0;
	if (r < 0)
		(void)op_explore_keep(c, x, &ignored);
	/* If the comparison fails, keep the results of the commands. */
	else if (measure(c, from, x, e) < 0)
		r = err_code(e, "explore.not_compared", NULL);
	c->wait = wait;
	return r;
}

int op_explore(struct cay *c, const struct explore_spec *spec, struct explored *ret, struct err *e)
{
	auto_done(explored_done) struct explored x = { .winner = -1 };
	struct fork_source from = { 0 };
	int r;

	if (check_spec(spec, e) < 0 || cay_catalog(c, e) < 0 ||
	    fork_source_open(c, spec->source, &from, e) < 0)
		return -1;
	x.v = calloc(spec->count, sizeof *x.v);
	r = x.v ? explore_from(c, &from, spec, &x, e) : err_sys(e, ENOMEM, "explore");
	fork_source_close(c, &from);
	if (r < 0)
		return -1;
	*ret = x;
	x = (struct explored){ 0 };
	return 0;
}
