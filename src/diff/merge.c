/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/merge.h"

#include <errno.h>

#include "diff/lines.h"

/* One side's edits, and how many have been processed. */
struct branch {
	struct lines lines;
	struct edits edits;
	uint32_t next; /* index of the next edit */
	uint32_t at;   /* line in this text that corresponds to the base's next line */
};

struct merge {
	struct lines base;
	struct branch ours, theirs;
	const struct merge_names *names;
	struct buf *out;
	uint32_t at; /* line of the base */
	int conflicts;
};

static void merge_done(struct merge *m)
{
	lines_done(&m->base);
	lines_done(&m->ours.lines);
	lines_done(&m->theirs.lines);
	edits_done(&m->ours.edits);
	edits_done(&m->theirs.edits);
}
DEFINE_AUTO(struct merge, merge_done)

static int branch_init(struct branch *b, struct str text, const struct lines *base)
{
	int r = lines_split(text, &b->lines);

	return r < 0 ? r : lines_diff(base, &b->lines, &b->edits);
}

static const struct edit *peek(const struct branch *b)
{
	return b->next < b->edits.n ? &b->edits.v[b->next] : NULL;
}

/* The line in the branch that corresponds to base line `line`, after all edits before it. */
static uint32_t skip_to(struct branch *b, uint32_t from, uint32_t line)
{
	uint32_t at = b->at + (line - from);

	for (const struct edit *e; (e = peek(b)) && e->a + e->n_a <= line && e->a >= from;
	     b->next++)
		at += e->n_b - e->n_a;
	return at;
}

/*
 * 1 if line i ends with CR LF (or the previous line, if line i has no end), 0 if not, -1: unknown.
 */
static int is_crlf(const struct lines *l, uint32_t i)
{
	struct str s = i < l->n ? lines_get(l, i, 1) : STR_NONE;

	if (i && s.n && s.p[s.n - 1] != '\n')
		s = lines_get(l, i - 1, 1);
	if (!s.n || s.p[s.n - 1] != '\n')
		return -1;
	return s.n > 1 && s.p[s.n - 2] == '\r';
}

/* Markers end with CR LF only if the preceding lines on both sides and the base's first line do. */
static const char *end_of_line(const struct merge *m, uint32_t ours, uint32_t theirs)
{
	int crlf = is_crlf(&m->ours.lines, ours ? ours - 1 : 0);

	if (crlf)
		crlf = is_crlf(&m->theirs.lines, theirs ? theirs - 1 : 0);
	if (crlf)
		crlf = is_crlf(&m->base, 0);
	return crlf > 0 ? "\r\n" : "\n";
}

static int put_marked(struct buf *out, const char *mark, const char *name, struct str text,
		      const char *eol)
{
	int r = buf_printf(out, "%s%s%s%s", mark, name[0] ? " " : "", name, eol);

	if (r == 0)
		r = buf_add_str(out, text);
	if (r == 0 && text.n && text.p[text.n - 1] != '\n')
		r = buf_add_c(out, eol);
	return r;
}

static int put_conflict(struct merge *m, struct str base, struct str ours, struct str theirs,
			const char *eol)
{
	int r = put_marked(m->out, "<<<<<<<", m->names->ours, ours, eol);

	if (r == 0)
		r = put_marked(m->out, "|||||||", "base", base, eol);
	if (r == 0)
		r = put_marked(m->out, "=======", "", theirs, eol);
	m->conflicts++;
	return r < 0 ? r : buf_printf(m->out, ">>>>>>> %s%s", m->names->theirs, eol);
}

/*
 * Finds all edits of both sides that overlap or touch the first one: base lines [ret_from, ret_to).
 */
static void find_group(const struct merge *m, uint32_t *ret_from, uint32_t *ret_to)
{
	uint32_t i = m->ours.next, j = m->theirs.next, from = UINT32_MAX, to = 0;

	for (;;) {
		const struct edit *a = i < m->ours.edits.n ? &m->ours.edits.v[i] : NULL;
		const struct edit *b = j < m->theirs.edits.n ? &m->theirs.edits.v[j] : NULL;
		const struct edit *e = !b || (a && a->a <= b->a) ? a : b;

		if (!e || (from != UINT32_MAX && e->a > to))
			break;
		from = e->a < from ? e->a : from;
		to = e->a + e->n_a > to ? e->a + e->n_a : to;
		if (e == a)
			i++;
		else
			j++;
	}
	*ret_from = from;
	*ret_to = to;
}

static int take_group(struct merge *m)
{
	uint32_t from, to, o0, o1, t0, t1;
	uint32_t o_next = m->ours.next, t_next = m->theirs.next;
	struct str base, ours, theirs;
	int r;

	find_group(m, &from, &to);
	r = buf_add_str(m->out, lines_get(&m->base, m->at, from - m->at));
	o0 = m->ours.at + (from - m->at);
	t0 = m->theirs.at + (from - m->at);
	m->ours.at = o0;
	m->theirs.at = t0;
	o1 = skip_to(&m->ours, from, to);
	t1 = skip_to(&m->theirs, from, to);
	base = lines_get(&m->base, from, to - from);
	ours = lines_get(&m->ours.lines, o0, o1 - o0);
	theirs = lines_get(&m->theirs.lines, t0, t1 - t0);
	m->at = to;
	m->ours.at = o1;
	m->theirs.at = t1;
	if (r < 0)
		return r;
	if (m->theirs.next == t_next || str_eq(ours, theirs))
		return buf_add_str(m->out, ours);
	if (m->ours.next == o_next)
		return buf_add_str(m->out, theirs);
	return put_conflict(m, base, ours, theirs, end_of_line(m, o0, t0));
}

int merge_texts(struct str base, struct str ours, struct str theirs,
		const struct merge_names *names, struct buf *out)
{
	auto_done(merge_done) struct merge m = { .names = names, .out = out };
	int r = lines_split(base, &m.base);

	if (r == 0)
		r = branch_init(&m.ours, ours, &m.base);
	if (r == 0)
		r = branch_init(&m.theirs, theirs, &m.base);
	while (r == 0 && (peek(&m.ours) || peek(&m.theirs)))
		r = take_group(&m);
	if (r == 0)
		r = buf_add_str(out, lines_get(&m.base, m.at, m.base.n - m.at));
	return r < 0 ? r : m.conflicts;
}

static bool is_text(struct str s)
{
	return !s.n || !memchr(s.p, 0, s.n);
}

bool merge_is_possible(struct str base, struct str ours, struct str theirs)
{
	if (is_text(base) && is_text(ours) && is_text(theirs))
		return true;
	return str_eq(base, ours) || str_eq(base, theirs) || str_eq(ours, theirs);
}
