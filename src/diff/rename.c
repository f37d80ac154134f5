/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds renames like git: first pairs deleted and added files with the same content, then those
 * that share at least half of their content.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "diff/compare.h"

enum {
	MOST_EXACT = 100000,	 /* files on each side */
	MOST_SIMILAR = 200,	 /* files on each side that are compared with each other */
	SIMILAR_BYTES = 1 << 20, /* size limit of such a file */
	EXACT_BYTES = 256 << 20, /* size limit of a file that is hashed */
	LONGEST_PIECE = 64,
	ALIKE = 50, /* per cent */
};

struct candidate {
	struct diff_entry *en;
	bool hashed, taken, failed;
	uint8_t hash[SHA256_SIZE];
	struct piece {
		uint32_t hash, bytes;
	} * pieces;
	size_t npieces;
};

struct pairing {
	struct diff *d;
	struct candidate *gone, *new;
	size_t ngone, nnew;
};

static void pairing_done(struct pairing *p)
{
	for (size_t i = 0; i < p->ngone; i++)
		free(p->gone[i].pieces);
	for (size_t i = 0; i < p->nnew; i++)
		free(p->new[i].pieces);
	free(p->gone);
	free(p->new);
}
DEFINE_AUTO(struct pairing, pairing_done)

static const struct stack_node *node_of(const struct diff_entry *en)
{
	return en->kind == DIFF_DELETED ? &en->old : &en->new;
}

static int open_of(const struct diff *d, const struct diff_entry *en)
{
	return en->kind == DIFF_DELETED ? diff_open_old(d, en) : diff_open_new(d, en);
}

static bool is_candidate(const struct diff_entry *en, enum diff_kind kind)
{
	return en->kind == kind && node_of(en)->size > 0 &&
	       (S_ISREG(node_of(en)->mode) || S_ISLNK(node_of(en)->mode));
}

/* Sorts by size, so that files that may be equal are adjacent. */
static int by_size(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	uint64_t p = node_of(x->en)->size, q = node_of(y->en)->size;

	return p != q ? (p < q ? -1 : 1) : strcmp(x->en->path, y->en->path);
}

static int gather(struct diff *d, enum diff_kind kind, struct candidate **ret, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += is_candidate(&d->v[i], kind);
	*ret = calloc(n + 1, sizeof **ret);
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < d->n; i++)
		if (is_candidate(&d->v[i], kind))
			(*ret)[(*ret_n)++].en = &d->v[i];
	if (n)
		qsort(*ret, n, sizeof **ret, by_size);
	return 0;
}

static bool hash_link(const struct diff *d, struct candidate *c)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_PATH);
	bool gone = c->en->kind == DIFF_DELETED;
	struct sha256 s;

	if (diff_read_link(gone ? d->old : d->new, node_of(c->en), c->en->path, &b) < 0)
		return false;
	sha256_init(&s);
	sha256_add(&s, b.data, b.len);
	sha256_end(&s, c->hash);
	c->failed = false;
	return c->hashed = true;
}

static bool hash_file(const struct diff *d, struct candidate *c)
{
	auto_free char *mem = NULL;
	auto_close int fd = FD_NONE;
	struct sha256 s;
	ssize_t n = 0;

	if (c->hashed || c->failed)
		return c->hashed;
	c->failed = true;
	if (S_ISLNK(node_of(c->en)->mode))
		return hash_link(d, c);
	mem = malloc(65536);
	fd = open_of(d, c->en);
	if (!mem || fd < 0 || node_of(c->en)->size > EXACT_BYTES)
		return false;
	sha256_init(&s);
	for (uint64_t left = EXACT_BYTES; left && (n = read(fd, mem, 65536)) > 0;
	     left -= (uint64_t)n)
		sha256_add(&s, mem, (size_t)n);
	sha256_end(&s, c->hash);
	c->failed = n != 0;
	return c->hashed = n == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int join(struct candidate *gone, struct candidate *new, int percent)
{
	char *old_path = strdup(gone->en->path);

	if (!old_path)
		return -ENOMEM;
	new->en->old_path = old_path;
	new->en->old = gone->en->old;
	new->en->kind = DIFF_RENAMED;
	new->en->percent = percent;
	new->en->content = percent < 100;
	new->en->mode = (gone->en->old.mode & 07777) != (new->en->new.mode & 07777);
	new->en->owner =
		gone->en->old.uid != new->en->new.uid || gone->en->old.gid != new->en->new.gid;
	gone->taken = new->taken = true;
	return 0;
}

/* Among equal files, prefers the one with the same name, else the first. */
static int join_exact(struct pairing *p, struct candidate *new, size_t first)
{
	struct candidate *best = NULL;
	uint64_t size = new->en->new.size;

	for (size_t i = first; i < p->ngone && p->gone[i].en->old.size == size; i++) {
		struct candidate *g = &p->gone[i];

		if (g->taken || (g->en->old.mode & S_IFMT) != (new->en->new.mode &S_IFMT) ||
		    !hash_file(p->d, new) || !hash_file(p->d, g) ||
		    memcmp(g->hash, new->hash, sizeof g->hash) != 0)
			continue;
		if (!best)
			best = g;
		if (strcmp(base_name(g->en->path), base_name(new->en->path)) == 0) {
			best = g;
			break;
		}
	}
	return best ? join(best, new, 100) : 0;
}

static int pair_exact(struct pairing *p)
{
	size_t first = 0;
	int r = 0;

	for (size_t i = 0; i < p->nnew && r == 0; i++) {
		while (first < p->ngone && p->gone[first].en->old.size < p->new[i].en->new.size)
			first++;
		/* With thousands of equal files, a search for the best name is not worth it. */
		while (first < p->ngone && p->gone[first].taken)
			first++;
		r = join_exact(p, &p->new[i], first);
	}
	return r;
}

static int by_hash(const void *a, const void *b)
{
	uint32_t x = ((const struct piece *)a)->hash, y = ((const struct piece *)b)->hash;

	return x < y ? -1 : x > y;
}

/* Splits text into lines, cuts long ones, and sums up equal ones. */
static int cut_pieces(struct candidate *c, struct str text)
{
	struct piece *v = malloc((text.n + 1) * sizeof *v);
	size_t n = 0, kept = 0;

	if (!v)
		return -ENOMEM;
	for (size_t at = 0; at < text.n;) {
		struct piece p = { .hash = 2166136261u };

		while (at < text.n && p.bytes < LONGEST_PIECE) {
			char ch = text.p[at++];

			p.hash = (p.hash ^ (uint8_t)ch) * 16777619u;
			p.bytes++;
			if (ch == '\n')
				break;
		}
		v[n++] = p;
	}
	qsort(v, n, sizeof *v, by_hash);
	for (size_t i = 0; i < n; i++) {
		if (kept && v[kept - 1].hash == v[i].hash)
			v[kept - 1].bytes += v[i].bytes;
		else
			v[kept++] = v[i];
	}
	c->pieces = v;
	c->npieces = kept;
	return 0;
}

static int load_pieces(const struct diff *d, struct candidate *c)
{
	auto_done(buf_done) struct buf b = BUF_INIT(SIMILAR_BYTES);
	auto_close int fd = FD_NONE;

	if (c->pieces || node_of(c->en)->size > SIMILAR_BYTES || !S_ISREG(node_of(c->en)->mode))
		return 0;
	fd = open_of(d, c->en);
	if (fd < 0 || io_read_all(fd, &b) < 0)
		return 0;
	return cut_pieces(c, buf_str(&b));
}

static int similarity(const struct candidate *a, const struct candidate *b)
{
	uint64_t common = 0, x = a->en->old.size, y = b->en->new.size, most = x > y ? x : y;

	if (!a->pieces || !b->pieces || most == 0)
		return 0;
	for (size_t i = 0, j = 0; i < a->npieces && j < b->npieces;) {
		const struct piece *p = &a->pieces[i], *q = &b->pieces[j];

		if (p->hash == q->hash)
			common += p->bytes < q->bytes ? p->bytes : q->bytes;
		i += p->hash <= q->hash;
		j += q->hash <= p->hash;
	}
	return common >= most ? 99 : (int)(common * 100 / most);
}

static size_t left(const struct candidate *c, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += !c[i].taken;
	return count;
}

static int load_all(struct pairing *p)
{
	int r = 0;

	for (size_t i = 0; i < p->ngone && r == 0; i++)
		r = p->gone[i].taken ? 0 : load_pieces(p->d, &p->gone[i]);
	for (size_t i = 0; i < p->nnew && r == 0; i++)
		r = p->new[i].taken ? 0 : load_pieces(p->d, &p->new[i]);
	return r;
}

static int pair_similar(struct pairing *p)
{
	int r;

	if (left(p->gone, p->ngone) > MOST_SIMILAR || left(p->new, p->nnew) > MOST_SIMILAR)
		return 0;
	r = load_all(p);
	for (size_t i = 0; i < p->nnew && r == 0; i++) {
		struct candidate *best = NULL;
		int most = ALIKE - 1;

		for (size_t k = 0; !p->new[i].taken &&k < p->ngone; k++) {
			int percent = p->gone[k].taken ? 0 : similarity(&p->gone[k], &p->new[i]);

			if (percent > most) {
				most = percent;
				best = &p->gone[k];
			}
		}
		if (best)
			r = join(best, &p->new[i], most);
	}
	return r;
}

static void drop_taken(struct pairing *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->ngone; i++)
		if (p->gone[i].taken) {
			free(p->gone[i].en->path);
			p->gone[i].en->path = NULL;
		}
	for (size_t i = 0; i < p->d->n; i++)
		if (p->d->v[i].path)
			p->d->v[kept++] = p->d->v[i];
	p->d->n = kept;
}

int diff_find_renames(struct diff *d)
{
	auto_done(pairing_done) struct pairing p = { .d = d };
	int r = gather(d, DIFF_DELETED, &p.gone, &p.ngone);

	if (r == 0)
		r = gather(d, DIFF_ADDED, &p.new, &p.nnew);
	if (r < 0 || !p.ngone || !p.nnew || p.ngone > MOST_EXACT || p.nnew > MOST_EXACT)
		return r;
	r = pair_exact(&p);
	if (r == 0)
		r = pair_similar(&p);
	drop_taken(&p);
	return r;
}
