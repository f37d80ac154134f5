/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cli/output.h"
#include "link/wait.h"

void takeover_done(struct takeover *t)
{
	for (int i = 0; i < t->n; i++) {
		struct takeover_dir *d = &t->dirs[i];

		diff_done(&d->diff);
		apply_done(&d->apply);
		apply_memory_done(&d->memory);
		fd_close(&d->fd);
		free(d->host);
	}
	free(t->dirs);
	diff_view_done(&t->layers);
	*t = (struct takeover){ 0 };
}

/* The paths that lie below this mount, in p; false where none of those named does. */
static bool scope_of(const struct takeover *t, const struct diff_mount *m,
		     const struct takeover_opts *o, char *const *named, struct diff_scope *s,
		     const char **p, const char **skip)
{
	size_t n = strlen(m->dest);
	bool all = o->npaths == 0;

	*s = (struct diff_scope){ .paths = p, .skip = skip };
	for (int i = 0; i < o->npaths; i++) {
		const char *rest, *path = named[i];
		size_t len = strlen(path);

		if (len <= n && strncmp(m->dest, path, len) == 0 &&
		    (m->dest[len] == '/' || !m->dest[len] || len == 1))
			all = true;
		else if (diff_view_find(&t->layers, path, &rest) == m)
			p[s->npaths++] = rest;
	}
	for (int i = 0; i < t->layers.n; i++) {
		const char *dest = t->layers.mounts[i].dest;

		if (strncmp(dest, m->dest, n) == 0 && dest[n] == '/')
			skip[s->nskip++] = dest + n + 1;
	}
	if (all)
		s->npaths = 0;
	return all || s->npaths;
}

static int open_dir(struct takeover_dir *d, const char *path, struct err *e)
{
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	d->host = strdup(path);
	return d->host ? 0 : err_sys(e, ENOMEM, "open '%s'", path);
}

static int plan_dir(struct takeover *t, struct takeover_dir *d, int sandbox_fd, const char *id,
		    const struct takeover_opts *o, const struct diff_scope *scope, struct err *e)
{
	if (open_dir(d, o->to ? o->to : d->mount->host, e) < 0)
		return -1;
	apply_init(&d->apply, d->fd, t->state_fd, id);
	if (apply_memory_load(&d->memory, sandbox_fd, d->mount->index, e) < 0 ||
	    diff_compare(&d->mount->base, &d->mount->now, scope, &d->diff, e) < 0)
		return -1;
	if (apply_memory_add_deleted(&d->memory, scope, &d->diff, e) < 0)
		return -1;
	if (d->diff.unread)
		return err_set(e, ERR_FAILED, "%llu files or directories below '%s' cannot be read",
			       (unsigned long long)d->diff.unread, d->mount->dest);
	d->rules = (struct apply_rules){
		.base_ns = t->layers.base_ns,
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
	if (d->rules.elsewhere) { /* what we remember is about the other one */
		d->rules.is_ours = NULL, d->rules.was_ours = NULL, d->rules.was_merged = NULL;
	} else {
		d->apply.undone = apply_memory_undone;
		d->apply.undone_ctx = &d->memory;
	}
	return apply_plan(&d->apply, &d->diff, &d->rules, e);
}

static int plan_all(struct takeover *t, int sandbox_fd, const char *id,
		    const struct takeover_opts *o, char **named, struct err *e)
{
	auto_free const char **paths = calloc((size_t)o->npaths + 1, sizeof *paths);
	auto_free const char **skip = calloc((size_t)t->layers.n + 1, sizeof *skip);

	t->dirs = calloc((size_t)t->layers.n + 1, sizeof *t->dirs);
	if (!paths || !skip || !t->dirs)
		return err_sys(e, ENOMEM, "plan");
	for (int i = 0; i < t->layers.n; i++) {
		const struct diff_mount *m = &t->layers.mounts[i];
		struct takeover_dir *d = &t->dirs[t->n];
		struct diff_scope scope;

		if (!m->host || !scope_of(t, m, o, named, &scope, paths, skip))
			continue;
		if (o->to && t->n)
			return err_set(e, ERR_INVALID, "--to is for one --dir: name paths of one");
		*d = (struct takeover_dir){ .mount = m, .fd = FD_NONE, .memory.dir_fd = FD_NONE };
		d->apply.stage_fd = FD_NONE;
		t->n++;
		if (plan_dir(t, d, sandbox_fd, id, o, &scope, e) < 0)
			return -1;
	}
	if (t->n == 0 && o->npaths)
		return err_set(e, ERR_INVALID, "none of the paths lies below a --dir");
	return t->n ? 0 : err_set(e, ERR_INVALID, "the sandbox was made without --dir");
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

int takeover_plan(struct takeover *t, struct cay *s, const struct sandbox_row *row,
		  const struct takeover_opts *o, struct err *e)
{
	auto_close int sandbox_fd = FD_NONE;
	auto_free char **named = calloc((size_t)o->npaths + 1, sizeof *named);
	int r = 0;

	t->state_fd = s->state.fd;
	if (!named)
		return err_sys(e, ENOMEM, "plan");
	/* What the last command changed is known to the warden then. */
	if (state_is_alive(&s->state, row->id))
		sync_trace(s, row->id);
	if (diff_view_open(s, row, &t->layers, e) < 0 ||
	    state_sandbox_open(&s->state, row->id, &sandbox_fd, e) < 0)
		return -1;
	for (int i = 0; i < o->npaths && r == 0; i++)
		r = diff_view_path(&t->layers, o->paths[i], &named[i], e);
	if (r == 0)
		r = plan_all(t, sandbox_fd, row->id, o, named, e);
	for (int i = 0; i < o->npaths; i++)
		free(named[i]);
	return r;
}

size_t takeover_steps(const struct takeover *t)
{
	size_t n = 0;

	for (int i = 0; i < t->n; i++)
		n += t->dirs[i].apply.n;
	return n;
}

size_t takeover_refused(const struct takeover *t)
{
	size_t n = 0;

	for (int i = 0; i < t->n; i++)
		n += t->dirs[i].apply.nrefused;
	return n;
}

static const char *op_text(const struct apply_step *s)
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

static void print_one(FILE *f, const struct takeover_dir *d, const char *what, const char *path,
		      const char *why)
{
	fprintf(f, "%-9s", what);
	out_safe_to(f, str_of(d->host));
	putc('/', f);
	out_safe_to(f, str_of(path));
	fprintf(f, "%s%s\n", why ? ": " : "", why ? why : "");
}

static void print_json(const struct takeover_dir *d, const char *action, const char *path,
		       const char *why)
{
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_text(&j, "dir", str_of(d->host));
	out_json_text(&j, "path", str_of(path));
	out_json_c(&j, "action", action);
	out_json_c(&j, "reason", why);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static void print_issues(const struct takeover_dir *d, const struct cmd_ctx *ctx, const char *what,
			 const struct apply_issue *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ctx->json)
			print_json(d, what, v[i].path, apply_why_text(v[i].why));
		else
			print_one(stderr, d, what, v[i].path, apply_why_text(v[i].why));
}

bool takeover_may_merge(const struct takeover *t)
{
	for (int i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->dirs[i].apply.nrefused; k++)
			if (t->dirs[i].apply.refused[k].why == APPLY_HOST_CHANGED)
				return true;
	return false;
}

bool takeover_left_config(const struct takeover *t)
{
	for (int i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->dirs[i].apply.nleft_out; k++)
			if (apply_why_is_config(t->dirs[i].apply.left_out[k].why))
				return true;
	return false;
}

void takeover_print(const struct takeover *t, const struct cmd_ctx *ctx, bool refused, FILE *f)
{
	for (int i = 0; i < t->n && !ctx->quiet; i++) {
		const struct takeover_dir *d = &t->dirs[i];
		const struct apply *a = &d->apply;

		for (size_t k = 0; k < a->n && !refused; k++)
			if (ctx->json)
				print_json(d, op_text(&a->steps[k]), a->steps[k].path, NULL);
			else
				print_one(f, d, op_text(&a->steps[k]), a->steps[k].path, NULL);
		if (!refused)
			print_issues(d, ctx, "left out", a->left_out, a->nleft_out);
		print_issues(d, ctx, "refused", a->refused, a->nrefused);
	}
}

int takeover_run(struct takeover *t, size_t *ret_conflicts, struct err *e)
{
	*ret_conflicts = 0;
	for (int i = 0; i < t->n; i++) {
		struct takeover_dir *d = &t->dirs[i];

		if (!d->apply.n)
			continue;
		if (apply_run(&d->apply, &d->diff, &d->rules, e) < 0)
			return err_ctx(e, "'%s'", d->host);
		if (!d->rules.elsewhere && apply_memory_add(&d->memory, &d->apply, &d->diff, e) < 0)
			return -1;
		for (size_t k = 0; k < d->apply.n; k++)
			*ret_conflicts += d->apply.steps[k].conflict;
	}
	return 0;
}
