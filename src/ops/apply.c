/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "link/wait.h"

void apply_planned_done(struct apply_planned *p)
{
	for (int i = 0; i < p->n; i++) {
		struct apply_dir *d = &p->dirs[i];

		diff_done(&d->diff);
		apply_done(&d->apply);
		apply_memory_done(&d->memory);
		fd_close(&d->fd);
		free(d->host);
	}
	free(p->dirs);
	diff_view_done(&p->layers);
	*p = (struct apply_planned){ 0 };
}

/*
 * Fills paths with the wanted paths below this mount. False if paths were named and none is below
 * it.
 */
static bool scope_of(const struct apply_planned *p, const struct diff_mount *m, char *const *named,
		     int n, struct diff_scope *s, const char **paths, const char **skip)
{
	bool all = n == 0;

	*s = (struct diff_scope){ .paths = paths, .skip = skip };
	for (int i = 0; i < n; i++) {
		const char *rest;

		if (diff_path_below(m->dest, named[i]))
			all = true;
		else if (diff_view_find(&p->layers, named[i], &rest) == m)
			paths[s->npaths++] = rest;
	}
	s->nskip = diff_view_inner(&p->layers, m, skip);
	if (all)
		s->npaths = 0;
	return all || s->npaths;
}

static int open_dir(struct apply_dir *d, const char *path, struct err *e)
{
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	d->host = strdup(path);
	return d->host ? 0 : err_sys(e, ENOMEM, "open '%s'", path);
}

static int plan_dir(struct cay *c, const struct apply_planned *p, struct apply_dir *d,
		    int sandbox_fd, const char *id, const struct apply_spec *o,
		    const struct diff_scope *scope, struct err *e)
{
	if (open_dir(d, o->to ? o->to : d->mount->host, e) < 0)
		return -1;
	apply_init(&d->apply, d->fd, c->state.fd, id);
	if (apply_memory_load(&d->memory, sandbox_fd, d->mount->index, e) < 0 ||
	    diff_compare(&d->mount->base, &d->mount->now, scope, &d->diff, e) < 0)
		return -1;
	if (apply_memory_add_deleted(&d->memory, scope, &d->diff, e) < 0)
		return -1;
	if (d->diff.unread)
		return err_set(e, ERR_FAILED, "%llu files or directories below '%s' cannot be read",
			       (unsigned long long)d->diff.unread, d->mount->dest);
	d->rules = (struct apply_rules){
		.base_ns = p->layers.base_ns,
		.frozen = d->mount->frozen,
		.elsewhere = o->to && strcmp(o->to, d->mount->host) != 0,
		.git_config = o->git_config,
		.is_ours = apply_memory_is_ours,
		.was_ours = apply_memory_was_ours,
		.was_merged = apply_memory_was_merged,
		.renewed = d->memory.n > 0,
		.base = apply_memory_base,
		.ctx = &d->memory,
		.merge = o->merge,
	};
	if (d->rules.elsewhere) { /* our memory describes the other directory */
		d->rules.is_ours = NULL, d->rules.was_ours = NULL, d->rules.was_merged = NULL;
	} else {
		d->apply.undone = apply_memory_undone;
		d->apply.undone_ctx = &d->memory;
	}
	return apply_plan(&d->apply, &d->diff, &d->rules, e);
}

/* The input of a plan: the sandbox, its directory, and the absolute paths named. */
struct plan_job {
	struct cay *c;
	const struct apply_spec *spec;
	struct sandbox_row row;
	int fd;
	char **named;
};

static void plan_job_done(struct plan_job *j)
{
	for (int i = 0; j->named && i < j->spec->npaths; i++)
		free(j->named[i]);
	free(j->named);
	fd_close(&j->fd);
	sandbox_row_done(&j->row);
}
DEFINE_AUTO(struct plan_job, plan_job_done)

static int plan_all(const struct plan_job *j, struct apply_planned *p, struct err *e)
{
	const struct apply_spec *o = j->spec;
	auto_free const char **paths = calloc((size_t)o->npaths + 1, sizeof *paths);
	auto_free const char **skip = calloc((size_t)p->layers.n + 1, sizeof *skip);

	p->dirs = calloc((size_t)p->layers.n + 1, sizeof *p->dirs);
	if (!paths || !skip || !p->dirs)
		return err_sys(e, ENOMEM, "plan");
	for (int i = 0; i < p->layers.n; i++) {
		const struct diff_mount *m = &p->layers.mounts[i];
		struct apply_dir *d = &p->dirs[p->n];
		struct diff_scope scope;

		if (!m->host || !scope_of(p, m, j->named, o->npaths, &scope, paths, skip))
			continue;
		if (o->to && p->n) {
			(void)err_set(e, ERR_INVALID,
				      "is for one directory: name paths of one of them");
			return err_field(e, "to");
		}
		*d = (struct apply_dir){ .mount = m, .fd = FD_NONE, .memory.dir_fd = FD_NONE };
		d->apply.stage_fd = FD_NONE;
		p->n++;
		if (plan_dir(j->c, p, d, j->fd, j->row.id, o, &scope, e) < 0)
			return -1;
	}
	if (p->n)
		return 0;
	(void)err_set(e, ERR_INVALID,
		      o->npaths ? "none of the paths lies below a directory of the host"
				: "the sandbox was made without a directory of the host");
	return err_code(e, "apply.no_dir", NULL);
}

static void sync_trace(struct cay *c, const char *id)
{
	auto_done(link_free) struct link *l = NULL;
	struct err ignored = { 0 };
	char hash[65];
	uint64_t seq;

	if (link_connect(&c->wait, &c->state, id, &l, &ignored) == 0)
		(void)link_sync_trace(l, &c->wait, &seq, hash, &ignored);
}

static void sum_up(struct apply_planned *p)
{
	for (int i = 0; i < p->n; i++) {
		const struct apply *a = &p->dirs[i].apply;

		p->steps += a->n;
		p->refused += a->nrefused;
		for (size_t k = 0; k < a->nrefused; k++)
			p->may_merge |= a->refused[k].why == APPLY_HOST_CHANGED;
		for (size_t k = 0; k < a->nleft_out; k++)
			p->left_config |= apply_why_is_config(a->left_out[k].why);
	}
	/* Count this run as an attempt. */
	for (int i = 0; i < p->n; i++)
		p->may_merge &= !p->dirs[i].rules.merge;
}

int op_apply_plan(struct cay *c, const struct apply_spec *spec, struct apply_planned *ret,
		  struct err *e)
{
	auto_done(apply_planned_done) struct apply_planned p = { 0 };
	auto_done(plan_job_done) struct plan_job j = { .c = c, .spec = spec, .fd = FD_NONE };

	j.named = calloc((size_t)spec->npaths + 1, sizeof *j.named);
	if (!j.named)
		return err_sys(e, ENOMEM, "plan");
	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, spec->sandbox, &j.row, e) < 0)
		return -1;
	/* Let the warden record what the last command changed. */
	if (state_is_alive(&c->state, j.row.id))
		sync_trace(c, j.row.id);
	if (diff_view_open(c, &j.row, &p.layers, e) < 0 ||
	    state_sandbox_open(&c->state, j.row.id, &j.fd, e) < 0)
		return -1;
	for (int i = 0; i < spec->npaths; i++)
		if (diff_view_path(&p.layers, spec->paths[i], &j.named[i], e) < 0)
			return -1;
	if (plan_all(&j, &p, e) < 0)
		return -1;
	sum_up(&p);
	*ret = p;
	p = (struct apply_planned){ 0 };
	return 0;
}

int apply_check(const struct apply_planned *p, struct err *e)
{
	if (!p->refused)
		return 0;
	(void)err_set(e, ERR_CONFLICT, "%zu change%s cannot be applied; nothing was changed",
		      p->refused, p->refused == 1 ? "" : "s");
	return err_code(e, p->may_merge ? "apply.may_merge" : "apply.refused", NULL);
}

static const char *action_of(const struct apply_step *s)
{
	switch (s->op) {
	case APPLY_DELETE:
	case APPLY_RMDIR:
		return "delete";
	case APPLY_ADD:
	case APPLY_MKDIR:
		return "add";
	case APPLY_CHMOD:
		return "chmod";
	case APPLY_REPLACE:
		break;
	}
	return s->conflict ? "CONFLICT" : s->merged ? "merge" : "change";
}

static void each_issue(const struct apply_dir *d, const char *action, const struct apply_issue *v,
		       size_t n, void (*fn)(void *ctx, const struct apply_change *c), void *ctx)
{
	for (size_t i = 0; i < n; i++)
		fn(ctx,
		   &(struct apply_change){ d->host, v[i].path, action, apply_why_text(v[i].why) });
}

void apply_each(const struct apply_planned *p, bool refused,
		void (*fn)(void *ctx, const struct apply_change *c), void *ctx)
{
	for (int i = 0; i < p->n; i++) {
		const struct apply_dir *d = &p->dirs[i];
		const struct apply *a = &d->apply;

		for (size_t k = 0; k < a->n && !refused; k++)
			fn(ctx, &(struct apply_change){ d->host, a->steps[k].path,
							action_of(&a->steps[k]), NULL });
		if (!refused)
			each_issue(d, "left out", a->left_out, a->nleft_out, fn, ctx);
		each_issue(d, "refused", a->refused, a->nrefused, fn, ctx);
	}
}

int op_apply_run(struct apply_planned *p, size_t *ret_conflicts, struct err *e)
{
	size_t conflicts = 0;

	if (apply_check(p, e) < 0)
		return -1;
	for (int i = 0; i < p->n; i++) {
		struct apply_dir *d = &p->dirs[i];

		if (!d->apply.n)
			continue;
		if (apply_run(&d->apply, &d->diff, &d->rules, e) < 0)
			return err_ctx(e, "'%s'", d->host);
		if (!d->rules.elsewhere && apply_memory_add(&d->memory, &d->apply, &d->diff, e) < 0)
			return -1;
		for (size_t k = 0; k < d->apply.n; k++)
			conflicts += d->apply.steps[k].conflict;
	}
	*ret_conflicts = conflicts;
	return 0;
}
