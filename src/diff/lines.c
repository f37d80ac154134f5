/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/lines.h"

#include <errno.h>
#include <limits.h>

enum {
	LONGEST = 4096,	       /* edits on either side in a search for the middle */
	BUDGET = 256 << 20,    /* steps in total */
	NOWHERE = INT_MIN / 2, /* a diagonal that was not reached */
};

int lines_split(struct str text, struct lines *ret)
{
	struct lines l = { .text = text };
	uint32_t cap = 2, i = 0;

	if (text.n > UINT32_MAX / 2)
		return -E2BIG;
	for (const char *p = text.p, *end = text.p + text.n;
	     p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		cap++;
	l.at = malloc(cap * sizeof *l.at);
	if (!l.at)
		return -ENOMEM;
	for (size_t at = 0; at < text.n;) {
		const char *nl = memchr(text.p + at, '\n', text.n - at);

		l.at[i++] = (uint32_t)at;
		at = nl ? (size_t)(nl - text.p) + 1 : text.n;
	}
	l.at[i] = (uint32_t)text.n;
	l.n = i;
	*ret = l;
	return 0;
}

void lines_done(struct lines *l)
{
	free(l->at);
	*l = (struct lines){ 0 };
}

void edits_done(struct edits *e)
{
	free(e->v);
	*e = (struct edits){ 0 };
}

/* Equal lines have equal numbers. */
struct classes {
	struct line_class {
		struct str line;
		uint32_t hash, in_a, in_b;
	} * v;
	uint32_t n, mask;
	uint32_t *table; /* class number + 1, or 0 */
};

static uint32_t hash_of(struct str s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t class_of(struct classes *c, struct str line)
{
	uint32_t hash = hash_of(line), i = hash & c->mask;

	for (; c->table[i]; i = (i + 1) & c->mask) {
		struct line_class *have = &c->v[c->table[i] - 1];

		if (have->hash == hash && str_eq(have->line, line))
			return c->table[i] - 1;
	}
	c->v[c->n] = (struct line_class){ .line = line, .hash = hash };
	c->table[i] = ++c->n;
	return c->n - 1;
}

/* One text, as the algorithm uses it. */
struct side {
	uint32_t n;    /* lines that the other text has too */
	uint32_t *cls; /* class by line; then packed, only for those lines */
	uint32_t *line;
	uint8_t *changed; /* by line */
};

struct myers {
	struct side a, b;
	struct classes classes;
	int *fwd, *bwd; /* furthest x by diagonal; points to the middle of the allocation */
	int *rows;
	int64_t budget;
};

static void myers_done(struct myers *m)
{
	struct side *sides[] = { &m->a, &m->b };

	for (int i = 0; i < 2; i++) {
		free(sides[i]->cls);
		free(sides[i]->line);
		free(sides[i]->changed);
	}
	free(m->classes.v);
	free(m->classes.table);
	free(m->rows);
}
DEFINE_AUTO(struct myers, myers_done)

static int side_init(struct side *s, const struct lines *l)
{
	s->cls = malloc((l->n + 1) * sizeof *s->cls);
	s->line = malloc((l->n + 1) * sizeof *s->line);
	s->changed = calloc(l->n + 1, 1);
	return s->cls && s->line && s->changed ? 0 : -ENOMEM;
}

static int myers_init(struct myers *m, const struct lines *a, const struct lines *b)
{
	uint64_t all = (uint64_t)a->n + b->n, size = 16;

	while (size < 2 * all)
		size *= 2;
	if (size > UINT32_MAX || side_init(&m->a, a) < 0 || side_init(&m->b, b) < 0)
		return -ENOMEM;
	m->classes.v = calloc(all + 1, sizeof *m->classes.v);
	m->classes.table = calloc(size, sizeof *m->classes.table);
	m->classes.mask = (uint32_t)size - 1;
	if (!m->classes.v || !m->classes.table)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->n; i++) {
		m->a.cls[i] = class_of(&m->classes, lines_get(a, i, 1));
		m->classes.v[m->a.cls[i]].in_a++;
	}
	for (uint32_t i = 0; i < b->n; i++) {
		m->b.cls[i] = class_of(&m->classes, lines_get(b, i, 1));
		m->classes.v[m->b.cls[i]].in_b++;
	}
	m->budget = BUDGET;
	return 0;
}

/* Set aside lines that the other text does not have. */
static void pack(struct side *s, uint32_t n, const struct classes *c)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct line_class *lc = &c->v[s->cls[i]];

		s->changed[i] = !lc->in_a || !lc->in_b;
		if (s->changed[i])
			continue;
		s->cls[s->n] = s->cls[i];
		s->line[s->n++] = i;
	}
}

struct box {
	uint32_t a0, a1, b0, b1;
};

/*
 * Advances d by one from one end. Returns true if the two ends meet, with the position in *x and
 * *y, relative to the box's corner.
 */
static bool step(struct myers *m, const struct box *q, int d, bool back, int *ret_x, int *ret_y)
{
	int n = (int)(q->a1 - q->a0), mm = (int)(q->b1 - q->b0), delta = n - mm;
	int *own = back ? m->bwd : m->fwd, *other = back ? m->fwd : m->bwd;
	int reach = back ? d : d - 1; /* how far the other end has advanced */
	bool meets = back ? !(delta & 1) : delta & 1;

	own[d + 1] = own[-d - 1] = NOWHERE;
	for (int k = -d; k <= d; k += 2) {
		int x = d == 0 ? 0 : own[k - 1] + 1 > own[k + 1] ? own[k - 1] + 1 : own[k + 1];
		int y = x - k, from = x;

		if (x < 0 || x > n || y > mm) {
			own[k] = NOWHERE;
			continue;
		}
		while (x < n && y < mm &&
		       (back ? m->a.cls[q->a1 - 1 - (uint32_t)x] ==
					m->b.cls[q->b1 - 1 - (uint32_t)y]
			     : m->a.cls[q->a0 + (uint32_t)x] == m->b.cls[q->b0 + (uint32_t)y]))
			x++, y++;
		own[k] = x;
		m->budget -= 1 + (x - from);
		if (meets && delta - k >= -reach && delta - k <= reach && other[delta - k] >= 0 &&
		    x + other[delta - k] >= n) {
			*ret_x = back ? n - x : x;
			*ret_y = back ? mm - y : y;
			return true;
		}
	}
	return false;
}

static bool middle(struct myers *m, const struct box *q, int *x, int *y)
{
	for (int d = 0; d <= LONGEST && m->budget > 0; d++)
		if (step(m, q, d, false, x, y) || step(m, q, d, true, x, y))
			return true;
	return false;
}

static void mark(struct side *s, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		s->changed[s->line[i]] = 1;
}

/* Each level halves the number of edits, so the recursion is shallow. */
static void solve(struct myers *m, struct box q)
{
	int x = 0, y = 0;

	while (q.a0 < q.a1 && q.b0 < q.b1 && m->a.cls[q.a0] == m->b.cls[q.b0])
		q.a0++, q.b0++;
	while (q.a0 < q.a1 && q.b0 < q.b1 && m->a.cls[q.a1 - 1] == m->b.cls[q.b1 - 1])
		q.a1--, q.b1--;
	if (q.a0 == q.a1 || q.b0 == q.b1 || !middle(m, &q, &x, &y)) {
		mark(&m->a, q.a0, q.a1);
		mark(&m->b, q.b0, q.b1);
		return;
	}
	solve(m, (struct box){ q.a0, q.a0 + (uint32_t)x, q.b0, q.b0 + (uint32_t)y });
	solve(m, (struct box){ q.a0 + (uint32_t)x, q.a1, q.b0 + (uint32_t)y, q.b1 });
}

static int collect(const struct myers *m, uint32_t na, uint32_t nb, struct edits *ret)
{
	struct edits out = { 0 };
	uint32_t cap = 0;

	for (uint32_t i = 0, j = 0; i < na || j < nb;) {
		struct edit e = { .a = i, .b = j };

		while (i < na && m->a.changed[i])
			i++;
		while (j < nb && m->b.changed[j])
			j++;
		e.n_a = i - e.a;
		e.n_b = j - e.b;
		if (!e.n_a && !e.n_b) {
			i++, j++;
			continue;
		}
		if (out.n == cap) {
			void *p = reallocarray(out.v, cap = cap ? 2 * cap : 16, sizeof e);

			if (!p) {
				edits_done(&out);
				return -ENOMEM;
			}
			out.v = p;
		}
		out.v[out.n++] = e;
		out.removed += e.n_a;
		out.added += e.n_b;
	}
	*ret = out;
	return 0;
}

int lines_diff(const struct lines *a, const struct lines *b, struct edits *ret)
{
	auto_done(myers_done) struct myers m = { 0 };
	int r = myers_init(&m, a, b);

	if (r < 0)
		return r;
	pack(&m.a, a->n, &m.classes);
	pack(&m.b, b->n, &m.classes);
	m.rows = malloc(2 * (2 * LONGEST + 8) * sizeof *m.rows);
	if (!m.rows)
		return -ENOMEM;
	m.fwd = m.rows + LONGEST + 4;
	m.bwd = m.fwd + 2 * LONGEST + 8;
	solve(&m, (struct box){ 0, m.a.n, 0, m.b.n });
	return collect(&m, a->n, b->n, ret);
}
