/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_report.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "warden/changes/changes_moved.h"

enum { PROBES = 64 /* most candidates with equal keys to search for the same name */ };

int changes_report_init(struct changes_report *p, const struct changes_root *roots,
			const struct changes_call *calls, uint32_t ncalls)
{
	*p = (struct changes_report){
		.roots = roots, .calls = calls, .ncalls = ncalls, .text = BUF_INIT(LIMIT_WALK_TEXT)
	};
	p->gaps = calloc(ncalls + 1, sizeof *p->gaps);
	return p->gaps ? 0 : -ENOMEM;
}

void changes_report_done(struct changes_report *p)
{
	free(p->diffs);
	free(p->dirs);
	free(p->gaps);
	buf_done(&p->text);
	*p = (struct changes_report){ 0 };
}

/* Make room for one more. 1, 0 at the ceiling, or -ENOMEM. */
static int grow(void **v, uint32_t n, uint32_t *cap, size_t size, uint32_t max)
{
	uint32_t more = *cap ? 2 * *cap : 16;
	void *grown;

	if (n >= max)
		return 0;
	if (n < *cap)
		return 1;
	grown = realloc(*v, more * size);
	if (!grown)
		return -ENOMEM;
	*v = grown;
	*cap = more;
	return 1;
}

static int grow_dirs(struct changes_report *p)
{
	void *v = p->dirs;
	int r = grow(&v, p->ndirs, &p->cap_dirs, sizeof *p->dirs, 2 * LIMIT_WALK_EVENTS);

	p->dirs = v;
	return r;
}

static int grow_diffs(struct changes_report *p)
{
	void *v = p->diffs;
	int r = grow(&v, p->ndiffs, &p->cap_diffs, sizeof *p->diffs, LIMIT_WALK_EVENTS);

	p->diffs = v;
	return r;
}

int changes_report_dir(struct changes_report *p, uint32_t up, uint32_t root, struct str name,
		       uint32_t *ret)
{
	uint32_t at = (uint32_t)p->text.len;
	int r = grow_dirs(p);

	*ret = CHANGES_NONE;
	if (r <= 0)
		return r;
	r = buf_add_str(&p->text, name);
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	p->dirs[p->ndirs] = (struct changes_dir){
		.up = up,
		.name = at,
		.name_len = (uint32_t)name.n,
		.gone = CHANGES_NONE,
		.new = CHANGES_NONE,
		.root = root,
	};
	*ret = p->ndirs++;
	return 0;
}

int changes_report_add(struct changes_report *p, enum changes_kind kind, uint32_t dir,
		       struct str name, const struct changes_rec *rec, uint64_t time_ns,
		       uint32_t *ret)
{
	uint32_t at = (uint32_t)p->text.len;
	int r = dir == CHANGES_NONE ? 0 : grow_diffs(p);

	*ret = CHANGES_NONE;
	if (r > 0) {
		r = buf_add_str(&p->text, name);
		r = r == -E2BIG ? 0 : r < 0 ? r : 1;
	}
	if (r <= 0) {
		changes_report_skip(p, time_ns, kind <= CHANGES_GONE_LOWER);
		return r;
	}
	p->diffs[p->ndiffs] = (struct changes_diff){
		.ino = rec->ino,
		.btime_ns = rec->btime_ns,
		.ctime_ns = rec->ctime_ns,
		.mtime_ns = rec->mtime_ns,
		.size = rec->size,
		.time_ns = time_ns,
		.mode = rec->mode,
		.dir = dir,
		.name = at,
		.match = CHANGES_NONE,
		.pair = CHANGES_NONE,
		.next = CHANGES_NONE,
		.name_len = (uint16_t)name.n,
		.kind = (uint8_t)kind,
	};
	*ret = p->ndiffs++;
	return 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Hash of d: by inode, or by the attributes that a copy-up keeps. */
static uint32_t hash(const struct changes_diff *d, bool lower)
{
	uint64_t h = lower ? mix(mix(d->size, d->mtime_ns), d->mode)
			   : mix(mix(d->ino, d->btime_ns), d->mode & S_IFMT);

	return (uint32_t)(h >> 32);
}

static bool same_key(const struct changes_report *p, const struct changes_diff *gone,
		     const struct changes_diff *new)
{
	if ((gone->mode & S_IFMT) != (new->mode &S_IFMT) ||
	    p->dirs[gone->dir].root != p->dirs[new->dir].root)
		return false;
	if (gone->kind == CHANGES_GONE)
		return gone->ino == new->ino && gone->btime_ns == new->btime_ns;
	return gone->size == new->size && gone->mtime_ns == new->mtime_ns &&
	       gone->mode == new->mode;
}

static bool same_name(const struct changes_report *p, const struct changes_diff *a,
		      const struct changes_diff *b)
{
	return a->name_len == b->name_len &&
	       memcmp(p->text.data + a->name, p->text.data + b->name, a->name_len) == 0;
}

/* True if new's directory is gone's directory after a move. */
static bool moved_along(const struct changes_report *p, const struct changes_diff *gone,
			const struct changes_diff *new)
{
	uint32_t from = p->dirs[gone->dir].gone, to = p->dirs[new->dir].new;

	return from != CHANGES_NONE && to != CHANGES_NONE && p->diffs[to].match == from;
}

bool changes_report_is_implied(const struct changes_report *p, const struct changes_diff *d)
{
	const struct changes_diff *from = &p->diffs[d->match];

	return d->pair == CHANGES_NONE && same_name(p, from, d) && moved_along(p, from, d);
}

/* 3: the same name in the same, moved directory; 2: the same name; 1: another name; 0: no match. */
static int rank(const struct changes_report *p, const struct changes_diff *gone,
		const struct changes_diff *new, bool lower)
{
	if ((gone->kind == CHANGES_GONE_LOWER) != lower || !same_key(p, gone, new))
		return 0;
	if (!same_name(p, gone, new))
		return 1;
	return moved_along(p, gone, new) ? 3 : 2;
}

static bool find(struct changes_report *p, uint32_t *bucket, uint32_t i, bool lower)
{
	uint32_t *best = NULL, *link = bucket;
	int best_rank = 0;

	for (int n = 0; *link != CHANGES_NONE && n < PROBES && best_rank < 3; n++) {
		int k = rank(p, &p->diffs[*link], &p->diffs[i], lower);

		if (k > best_rank) {
			best_rank = k;
			best = link;
		}
		link = &p->diffs[*link].next;
	}
	if (!best)
		return false;
	p->diffs[i].match = *best;
	p->diffs[*best].match = i;
	*best = p->diffs[*best].next;
	return true;
}

/* changes_moved() handles directories of the lower. */
static bool may_be_lower(const struct changes_diff *d)
{
	return !S_ISDIR(d->mode) && !(d->flags & (CHANGES_MODE_ONLY | CHANGES_TOUCHED));
}

int changes_report_match(struct changes_report *p)
{
	auto_free uint32_t *buckets = NULL;
	uint32_t size = 16;
	int r = changes_moved(p);

	if (r < 0)
		return r;
	while (size < p->ndiffs)
		size *= 2;
	buckets = malloc(size * sizeof *buckets);
	if (!buckets)
		return -ENOMEM;
	memset(buckets, 0xff, size * sizeof *buckets); /* CHANGES_NONE */
	for (uint32_t i = p->ndiffs; i-- > 0;) {
		struct changes_diff *d = &p->diffs[i];
		uint32_t *bucket = &buckets[hash(d, d->kind == CHANGES_GONE_LOWER) % size];

		if (d->kind > CHANGES_GONE_LOWER || d->match != CHANGES_NONE)
			continue;
		d->next = *bucket;
		*bucket = i;
	}
	/* In walk order, so that a directory is matched before its entries. */
	for (uint32_t i = 0; i < p->ndiffs; i++) {
		const struct changes_diff *d = &p->diffs[i];

		if (d->kind != CHANGES_NEW || d->match != CHANGES_NONE ||
		    find(p, &buckets[hash(d, false) % size], i, false))
			continue;
		if (may_be_lower(d))
			(void)find(p, &buckets[hash(d, true) % size], i, true);
	}
	return 0;
}
