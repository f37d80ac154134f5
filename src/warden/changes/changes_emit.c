/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write the events, each with the call it belongs to.
 *
 * An inode's ctime is the time of its last change, so the call whose window contains it made the
 * change. A deleted name has no ctime. Its directory's ctime only shows that the name was removed
 * by then, because later removals update it. So each call that had begun by then may have removed
 * the name, and the call is certain only if there is exactly one.
 *
 * On kernels before 6.13 a ctime is the time of the last tick. So windows begin with the coarse
 * clock, and calls that follow one another within a tick are both candidates.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "warden/changes/changes_report.h"

enum { PATH_ROOM = LIMIT_EVENT / 2, FLUSH_EVERY = 512 };

struct changes_emitter {
	struct changes_report *report;
	const struct changes_sink *to; /* while changes_emitter_some() runs */
	uint64_t unlisted;
	uint32_t count, next; /* next: of the report's differences */
	char path[PATH_ROOM], from[PATH_ROOM];
};

static bool holds(const struct changes_call *c, uint64_t time_ns, bool gone)
{
	return c->start_ns <= time_ns && (gone || time_ns <= c->end_ns);
}

/* True if the call ran then, but did nothing. A name was deleted at any time since the last walk.
 */
static bool was_idle(const struct changes_report *p, const struct changes_call *c, uint64_t time_ns,
		     bool gone)
{
	uint64_t from = gone && p->since_ns < time_ns ? p->since_ns : time_ns;

	return changes_idle_covers(&c->idle, from, time_ns);
}

/* Which calls may have made a change. */
struct candidates {
	uint32_t n, ran; /* candidates; calls that ran at that time */
	uint32_t first;	 /* the first candidate */
	bool idle;	 /* idle calls are no candidates */
};

static struct candidates candidates(const struct changes_report *p, uint64_t time_ns, bool gone)
{
	struct candidates x = { .first = p->ncalls, .idle = true };
	uint32_t first_ran = p->ncalls;

	for (uint32_t i = 0; i < p->ncalls; i++) {
		if (!holds(&p->calls[i], time_ns, gone))
			continue;
		if (x.ran++ == 0)
			first_ran = i;
		if (!was_idle(p, &p->calls[i], time_ns, gone) && x.n++ == 0)
			x.first = i;
	}
	/* Nobody worked: something else changed the file for one of them. */
	if (x.n == 0 && x.ran > 0)
		x = (struct candidates){ .n = x.ran, .ran = x.ran, .first = first_ran };
	return x;
}

static bool is_certain(const struct candidates *x)
{
	return x->n == 1;
}

void changes_report_skip(struct changes_report *p, uint64_t time_ns, bool gone)
{
	struct candidates x = candidates(p, time_ns, gone);
	bool certain = is_certain(&x) && (!p->known_ns || time_ns < p->known_ns);

	p->gaps[certain ? x.first : p->ncalls]++;
}

static bool prepend(char *room, size_t *at, const char *p, size_t n)
{
	if (n + 1 > *at)
		return false;
	*at -= n;
	memcpy(room + *at, p, n);
	room[--*at] = '/';
	return true;
}

/* Build a path from its end. STR_NONE if it does not fit. */
static struct str path_of(const struct changes_report *p, const struct changes_diff *d,
			  char room[static PATH_ROOM])
{
	const struct changes_dir *dir = &p->dirs[d->dir];
	size_t at = PATH_ROOM;
	const char *dest = p->roots[dir->root].dest;
	bool fits = prepend(room, &at, p->text.data + d->name, d->name_len);

	for (; fits && dir->up != CHANGES_NONE; dir = &p->dirs[dir->up])
		fits = prepend(room, &at, p->text.data + dir->name, dir->name_len);
	if (fits && strcmp(dest, "/") != 0)
		fits = prepend(room, &at, dest + 1, strlen(dest + 1));
	return fits ? (struct str){ room + at, PATH_ROOM - at } : STR_NONE;
}

static struct str type_of(uint32_t mode)
{
	if (S_ISREG(mode))
		return STR("file");
	if (S_ISDIR(mode))
		return STR("dir");
	return S_ISLNK(mode) ? STR("symlink") : STR("other");
}

/* If no call's window fits (the clock was set), every call is a candidate. */
static void add_candidates(struct changes_emitter *m, const struct changes_diff *d, bool gone,
			   const struct candidates *x)
{
	const struct changes_report *p = m->report;
	uint32_t listed = 0, all = x->n ? x->n : p->ncalls;

	trace_bool(m->to->trace, "certain", false);
	trace_array(m->to->trace, "calls");
	for (uint32_t i = 0; i < p->ncalls && listed < LIMIT_EVENT_CALLS; i++) {
		if (x->n && (!holds(&p->calls[i], d->time_ns, gone) ||
			     (x->idle && was_idle(p, &p->calls[i], d->time_ns, gone))))
			continue;
		trace_item_num(m->to->trace, p->calls[i].call);
		listed++;
	}
	trace_array_end(m->to->trace);
	if (all > listed)
		trace_num(m->to->trace, "calls_more", all - listed);
}

/* The call of the event, or NULL. */
static const struct changes_call *call_of(const struct changes_report *p,
					  const struct candidates *x)
{
	if (is_certain(x))
		return &p->calls[x->first];
	return x->n == 0 && p->ncalls == 1 ? &p->calls[0] : NULL;
}

static int end_event(struct changes_emitter *m, const struct changes_diff *d, bool gone,
		     struct err *e)
{
	int r = trace_end(m->to->trace);

	if (r == -E2BIG) {
		changes_report_skip(m->report, d->time_ns, gone);
		return 0;
	}
	if (r == 0 && ++m->count % FLUSH_EVERY == 0)
		r = trace_flush(m->to->trace);
	return r < 0 ? err_sys(e, -r, "cannot write to the trace") : 0;
}

static int emit(struct changes_emitter *m, const char *kind, const struct changes_diff *d,
		const struct changes_diff *from_diff, struct err *e)
{
	const struct changes_report *p = m->report;
	struct trace *t = m->to->trace;
	struct str path = path_of(p, d, m->path), from = STR_NONE;
	bool gone = d->kind == CHANGES_GONE || d->kind == CHANGES_GONE_LOWER;
	struct candidates x = candidates(p, d->time_ns, gone);
	const struct changes_call *call = call_of(p, &x);

	if (from_diff)
		from = path_of(p, from_diff, m->from);
	if (!path.p || (from_diff && !from.p)) {
		changes_report_skip(m->report, d->time_ns, gone);
		return 0;
	}
	(void)trace_begin(t, kind, call ? call->call : 0, call ? call->event : 0);
	if (from_diff)
		trace_text(t, "from", from);
	trace_text(t, "path", path);
	if (d->mode)
		trace_text(t, "type", type_of(d->mode));
	if (!gone && S_ISREG(d->mode))
		trace_num(t, "size", (int64_t)d->size);
	if (!gone)
		trace_num(t, "mode", d->mode & 07777);
	if (d->flags & CHANGES_MODE_ONLY)
		trace_text(t, "what", STR("mode"));
	if (d->flags & CHANGES_TOUCHED)
		trace_text(t, "what", STR("touched"));
	if (is_certain(&x))
		trace_text(t, "known_by", x.ran == 1 ? STR("time") : STR("idle"));
	else if (p->ncalls > 0)
		add_candidates(m, d, gone, &x);
	if (m->to->before)
		trace_num(t, "before", (int64_t)m->to->before);
	return end_event(m, d, gone, e);
}

static int emit_renamed(struct changes_emitter *m, const struct changes_diff *d, struct err *e)
{
	const struct changes_report *p = m->report;
	const struct changes_diff *from = &p->diffs[d->match];
	struct changes_diff now = *d;
	bool is_dir = S_ISDIR(d->mode), implied = changes_report_is_implied(p, d);
	bool content = !is_dir && (d->mtime_ns != from->mtime_ns || d->size != from->size ||
				   d->flags & CHANGES_OTHER);
	bool touched =
		!is_dir && implied && d->ctime_ns != from->ctime_ns && !(d->flags & CHANGES_SAME);

	now.flags = 0;
	if (!implied && emit(m, "file.rename", &now, from, e) < 0)
		return -1;
	if (!content && d->mode == from->mode && !touched)
		return 0;
	if (!content)
		now.flags = d->mode != from->mode ? CHANGES_MODE_ONLY : CHANGES_TOUCHED;
	return emit(m, "file.change", &now, NULL, e);
}

static int emit_new(struct changes_emitter *m, const struct changes_diff *d, struct err *e)
{
	bool replaced = d->pair != CHANGES_NONE && !S_ISDIR(d->mode) &&
			m->report->diffs[d->pair].match == CHANGES_NONE;

	if (d->match != CHANGES_NONE)
		return emit_renamed(m, d, e);
	return emit(m, replaced || d->flags & CHANGES_EXISTED ? "file.change" : "file.create", d,
		    NULL, e);
}

static int emit_gone(struct changes_emitter *m, const struct changes_diff *d, struct err *e)
{
	bool overwritten = d->pair != CHANGES_NONE &&
			   (!S_ISDIR(d->mode) || m->report->diffs[d->pair].match != CHANGES_NONE);

	if (d->match != CHANGES_NONE || overwritten)
		return 0;
	return emit(m, "file.delete", d, NULL, e);
}

/* call: NULL if it is not certain. */
static int emit_gap(struct changes_emitter *m, const struct changes_call *call, uint64_t count,
		    const char *what, struct err *e)
{
	struct trace *t = m->to->trace;
	int r;

	if (count == 0)
		return 0;
	(void)trace_begin(t, "trace.gap", call ? call->call : 0, call ? call->event : 0);
	trace_num(t, "count", (int64_t)count);
	trace_text(t, "what", str_of(what));
	r = trace_end(t);
	return r < 0 ? err_sys(e, -r, "cannot write to the trace") : 0;
}

static int emit_one(struct changes_emitter *m, const struct changes_diff *d, struct err *e)
{
	if (d->kind == CHANGES_NEW)
		return emit_new(m, d, e);
	return d->kind == CHANGES_CHANGED ? emit(m, "file.change", d, NULL, e) : emit_gone(m, d, e);
}

static int emit_gaps(struct changes_emitter *m, struct err *e)
{
	const struct changes_report *p = m->report;

	for (uint32_t i = 0; i <= p->ncalls; i++)
		if (emit_gap(m, i < p->ncalls ? &p->calls[i] : NULL, p->gaps[i], "file", e) < 0)
			return -1;
	return emit_gap(m, NULL, m->unlisted, "dir", e);
}

int changes_emitter_new(struct changes_report *p, uint64_t unlisted, struct changes_emitter **ret)
{
	struct changes_emitter *m = malloc(sizeof *m);

	if (!m)
		return -ENOMEM;
	m->report = p;
	m->unlisted = unlisted;
	m->count = m->next = 0;
	*ret = m;
	return 0;
}

void changes_emitter_free(struct changes_emitter *m)
{
	free(m);
}

int changes_emitter_some(struct changes_emitter *m, const struct changes_sink *to, uint32_t most,
			 struct err *e)
{
	const struct changes_report *p = m->report;

	m->to = to;
	for (uint32_t n = 0; m->next < p->ndiffs; n++) {
		if (n == most)
			return 1;
		if (emit_one(m, &p->diffs[m->next++], e) < 0)
			return -1;
	}
	return emit_gaps(m, e);
}
