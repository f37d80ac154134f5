/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/limit/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "warden/features.h"

int limits_take(struct warden *w, struct field f)
{
	struct cell_limits *l = &w->spec.limits;
	uint64_t best_effort = l->best_effort;
	uint64_t *to = f.tag == TAG_MEMORY	  ? &l->memory
		       : f.tag == TAG_CPU_MILLI	  ? &l->cpu_milli
		       : f.tag == TAG_PIDS	  ? &l->pids
		       : f.tag == TAG_FILES	  ? &l->files
		       : f.tag == TAG_DISK	  ? &l->disk
		       : f.tag == TAG_TIMEOUT_MS  ? &w->defaults.timeout_ms
		       : f.tag == TAG_BEST_EFFORT ? &best_effort
						  : NULL;

	if (!to)
		return 1;
	if (field_u64(f, to) < 0)
		return -EBADMSG;
	l->best_effort = best_effort != 0;
	return 0;
}

void limits_trace(const struct warden *w)
{
	const struct cell_limits *l = &w->spec.limits;
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = {
		{ "memory", l->memory }, { "cpu_milli", l->cpu_milli },
		{ "pids", l->pids },	 { "files", l->files },
		{ "disk", l->disk },	 { "call_timeout_ms", w->defaults.timeout_ms },
		{ "ttl_ms", w->ttl_ms }, { "idle_ms", w->idle_ms },
	};
	struct trace *t = (struct trace *)&w->trace;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].value)
			trace_num(t, rows[i].key, (int64_t)rows[i].value);
}

static void trace_unenforced(struct warden *w, uint32_t call, uint64_t parent, const char *limit,
			     const char *why)
{
	(void)trace_begin(&w->trace, "limit.unenforced", call, parent);
	trace_text(&w->trace, "limit", str_of(limit));
	trace_text(&w->trace, "detail", str_of(why));
	warden_trace_end(w);
}

void limits_trace_unenforced(struct warden *w)
{
	for (int i = 0; i < w->cell->nunenforced; i++)
		trace_unenforced(w, 0, w->created_event, w->cell->unenforced[i].limit,
				 w->cell->unenforced[i].why);
}

const char *limits_warning(const struct cell_unenforced *u, char *out, size_t size)
{
	(void)snprintf(out, size, "--%s is not enforced: %s", u->limit, u->why);
	return out;
}

static int limit_call(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e)
{
	struct cell_unenforced u = { .limit = "call-memory" };
	const struct driver *d = c->w->driver;
	int r = -EOPNOTSUPP;

	if (features_of(d->has) & HAS_GROUPS)
		r = d->group_limit(c->w->cell, c->group, a->call_memory, &fds[FD_ENTRY], u.why);
	else
		(void)snprintf(u.why, sizeof u.why, "driver '%s' has no groups of calls", d->name);

	c->memory = r == 0 ? a->call_memory : 0;
	if (r == 0)
		return 0;
	if (!a->best_effort) {
		(void)err_set(e, ERR_UNAVAILABLE, "--call-memory cannot be enforced here: %s",
			      u.why);
		return err_hint(e, "leave it out, or take --best-effort to go on without it");
	}
	(void)limits_warning(&u, c->warning, sizeof c->warning);
	trace_unenforced(c->w, c->id, c->w->created_event, u.limit, u.why);
	return 0;
}

int limits_open_call(struct call *c, const struct ask *a, int fds[FD_ROLES], struct err *e)
{
	/* On a host without v2 the call has no group yet: name one. */
	if (a->call_memory && !c->group[0] && features_of(c->w->driver->has) & HAS_GROUPS)
		(void)snprintf(c->group, sizeof c->group, "call-%u", c->id);
	if (a->call_memory && limit_call(c, a, fds, e) < 0)
		return -1;
	c->counted = features_of(c->w->driver->has) & HAS_GROUPS &&
		     (c->memory || c->w->spec.limits.memory || c->w->spec.limits.pids);
	if (c->counted)
		c->w->driver->group_count(c->w->cell, c->group, &c->counts);
	return 0;
}

static void trace_hit(struct call *c, const char *limit, const char *key, uint64_t value,
		      uint64_t times)
{
	struct trace *t = &c->w->trace;

	(void)trace_begin(t, "limit.hit", c->id, c->event);
	trace_text(t, "limit", str_of(limit));
	trace_num(t, key, (int64_t)value);
	trace_num(t, "count", (int64_t)times);
	warden_trace_end(c->w);
}

void limits_close_call(struct call *c)
{
	struct group_counts now;
	const struct cell_limits *l = &c->w->spec.limits;

	if (!c->counted)
		return;
	c->counted = false;
	c->w->driver->group_count(c->w->cell, c->group, &now);
	/* A lower count: a later call got its own limit, and now each call has its own count. */
	c->oom_kills =
		now.oom_kills - (now.oom_kills < c->counts.oom_kills ? 0 : c->counts.oom_kills);
	if (c->oom_kills) {
		c->oom_own = c->memory && (now.oom_call || !l->memory);
		c->oom_limit = c->oom_own ? c->memory : l->memory;
		trace_hit(c, c->oom_own ? "call-memory" : "memory", "bytes", c->oom_limit,
			  c->oom_kills);
		if (WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL && !c->kill_reason)
			c->kill_reason = "oom";
	}
	if (l->pids && now.pids_hits > c->counts.pids_hits)
		trace_hit(c, "pids", "pids", l->pids, now.pids_hits - c->counts.pids_hits);
}

bool limits_killed_init(struct warden *w)
{
	bool hit = false;

	for (struct call *c = w->calls; c; c = c->next) {
		if (c->exited)
			continue;
		c->status = SIGKILL;
		limits_close_call(c);
		hit |= c->oom_kills > 0;
	}
	return hit;
}
