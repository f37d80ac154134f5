/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_moved.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "diff/stack.h"
#include "warden/changes/changes_moved_index.h"
#include "warden/changes/changes_tree.h"

enum { VOTES = 8 /* most candidates counted per directory */, DEPTH = 130, PROBES = 64 };

struct moved {
	struct changes_report *p;
	struct moved_index index;
	struct stack stack;
	uint32_t root; /* root of the stack; CHANGES_NONE: none yet */
	uint64_t compared;
};

/* A deleted directory, as the lower layers have it. */
struct moved_lower {
	struct stack_dir dir;
	struct stack_names names;
	char path[LIMIT_PATH];
};

static void lower_done(struct moved_lower *l)
{
	stack_dir_done(&l->dir);
	stack_names_done(&l->names);
}
DEFINE_AUTO(struct moved_lower, lower_done)

static void moved_done(struct moved *m)
{
	moved_index_done(&m->index);
	stack_done(&m->stack);
}
DEFINE_AUTO(struct moved, moved_done)

static struct moved_side *side_of(const struct moved *m, uint32_t i)
{
	return &m->index.side[i];
}

/* The first name that is gone from a directory. */
static uint32_t first_gone(const struct moved *m, uint32_t node)
{
	return node < m->index.ndirs ? m->index.first[node] : CHANGES_NONE;
}

/*
 * Match each inode that has a new name. Directories matched in this way need no further search.
 * True if any other directory is new.
 */
static bool follow_inodes(struct moved *m)
{
	bool any = false;

	for (uint32_t i = 0; i < m->p->ndiffs; i++) {
		const struct changes_diff *d = &m->p->diffs[i];
		uint32_t gone =
			d->kind == CHANGES_NEW ? moved_find_inode(&m->index, d) : CHANGES_NONE;
		bool is_dir = d->kind == CHANGES_NEW && S_ISDIR(d->mode);

		any |= is_dir && gone == CHANGES_NONE;
		if (gone == CHANGES_NONE)
			continue;
		side_of(m, gone)->now = i;
		if (is_dir)
			side_of(m, i)->taken = side_of(m, gone)->taken = true;
	}
	return any;
}

/* --- the lower layers --- */

static int add_layer(struct stack *s, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : stack_add(s, (struct stack_layer){ .fd = copy });
}

static int use_stack(struct moved *m, uint32_t root)
{
	const struct changes_root *of = &m->p->roots[root];
	int r = 0;

	if (m->root == root)
		return 0;
	stack_done(&m->stack);
	m->stack.userxattr = !of->privileged;
	m->root = root;
	for (int i = 0; i < of->nlayers && r == 0; i++)
		r = of->layers[i] < 0 ? 0 : add_layer(&m->stack, of->layers[i]);
	return r == 0 && of->lower_fd >= 0 ? add_layer(&m->stack, of->lower_fd) : r;
}

/* The path of a difference below the root of its overlay. */
static bool spell(const struct changes_report *p, const struct changes_diff *d,
		  char out[LIMIT_PATH])
{
	size_t at = LIMIT_PATH - 1;
	const struct changes_dir *dir = &p->dirs[d->dir];
	const char *name = p->text.data + d->name;
	size_t n = d->name_len;

	out[at] = '\0';
	for (;;) {
		if (n + 1 > at)
			return false;
		at -= n;
		memcpy(out + at, name, n);
		if (dir->up == CHANGES_NONE)
			break;
		out[--at] = '/';
		name = p->text.data + dir->name;
		n = dir->name_len;
		dir = &p->dirs[dir->up];
	}
	memmove(out, out + at, LIMIT_PATH - at);
	return true;
}

/* List the lower layers' entries of a deleted directory; empty if it cannot be read. */
static int list_lower(struct moved *m, const struct changes_diff *gone, struct moved_lower *ret)
{
	struct stack_node node;
	int r = use_stack(m, m->p->dirs[gone->dir].root);

	if (r < 0 || m->stack.n == 0 || !spell(m->p, gone, ret->path))
		return r == -ENOMEM ? r : 0;
	r = stack_find(&m->stack, ret->path, &node);
	if (r <= 0 || !S_ISDIR(node.mode))
		return r == -ENOMEM ? r : 0;
	r = stack_dir_open(&m->stack, ret->path, &node.mask, &ret->dir);
	for (int i = 0; i < ret->dir.n && r == 0; i++)
		r = stack_names_add(&ret->names, ret->dir.parts[i].fd);
	stack_names_sort(&ret->names);
	return r == -ENOMEM ? r : 0;
}

static int look_lower(const struct moved *m, const struct moved_lower *l, size_t i,
		      struct stack_node *ret)
{
	return stack_look(&m->stack, &l->dir, stack_name(&l->names, i), ret);
}

/* --- find the new directory --- */

struct ballot {
	uint32_t dir[VOTES], votes[VOTES], total;
	int n;
};

/* Votes for the directory of an entry. weight 0 only makes it a candidate. */
static void vote(const struct moved *m, struct ballot *b, uint32_t root, uint32_t entry,
		 uint32_t weight)
{
	const struct changes_dir *in = &m->p->dirs[m->p->diffs[entry].dir];
	uint32_t dir = in->new;
	int i = 0;

	if (dir == CHANGES_NONE || in->root != root || side_of(m, dir)->taken ||
	    m->p->diffs[dir].match != CHANGES_NONE)
		return;
	while (i < b->n && b->dir[i] != dir)
		i++;
	if (i == VOTES)
		return;
	if (i == b->n) {
		b->dir[b->n++] = dir;
		b->votes[i] = 0;
	}
	b->votes[i] += weight;
}

/* Vote with each new entry that has the name and attributes of the lower's entry. */
static void vote_lower(const struct moved *m, struct ballot *b, uint32_t root, const char *name,
		       const struct stack_node *lower)
{
	size_t n = strlen(name);
	uint32_t i = moved_first_key(&m->index, lower->mode, lower->size, lower->mtime_ns, name, n);

	for (int k = 0; i != CHANGES_NONE && k < PROBES; i = side_of(m, i)->by_key, k++) {
		const struct changes_diff *d = &m->p->diffs[i];

		if (d->mode == lower->mode && d->mtime_ns == lower->mtime_ns &&
		    (S_ISDIR(d->mode) || d->size == lower->size) &&
		    moved_has_name(&m->index, d, name, n))
			vote(m, b, root, i, !S_ISDIR(d->mode));
	}
}

/* A directory's mtime changes with its entries: among the candidates, its name is enough. */
static void vote_directory(const struct moved *m, struct ballot *b, const char *name)
{
	for (int k = 0; k < b->n; k++) {
		uint32_t to = moved_find_name(&m->index, side_of(m, b->dir[k])->node, name,
					      strlen(name), false);

		b->votes[k] += to != CHANGES_NONE && S_ISDIR(m->p->diffs[to].mode);
	}
}

/* Names that the upper had vote for the directory in which their inode is now. */
static void vote_upper(const struct moved *m, struct ballot *b, uint32_t root, uint32_t node)
{
	uint32_t i = first_gone(m, node);

	for (; i != CHANGES_NONE; i = side_of(m, i)->sibling) {
		const struct changes_diff *d = &m->p->diffs[i];
		uint32_t now = side_of(m, i)->now;

		if (d->kind != CHANGES_GONE)
			continue;
		b->total++;
		if (now != CHANGES_NONE && moved_has_name(&m->index, &m->p->diffs[now],
							  moved_name(&m->index, d), d->name_len))
			vote(m, b, root, now, 1);
	}
}

static uint32_t find_empty(const struct moved *m, const struct changes_diff *gone)
{
	uint32_t i = moved_first_dir(&m->index, gone->mode, gone->mtime_ns);

	for (int n = 0; i != CHANGES_NONE && n < PROBES; i = side_of(m, i)->by_inode, n++) {
		const struct changes_diff *d = &m->p->diffs[i];

		if (d->mode == gone->mode && d->mtime_ns == gone->mtime_ns &&
		    !side_of(m, i)->taken && d->match == CHANGES_NONE &&
		    side_of(m, i)->node == CHANGES_NONE &&
		    m->p->dirs[d->dir].root == m->p->dirs[gone->dir].root)
			return i;
	}
	return CHANGES_NONE;
}

/* Files first, because they identify the candidates best. */
static void vote_lowers(const struct moved *m, struct ballot *b, uint32_t gone,
			const struct moved_lower *l)
{
	uint32_t node = side_of(m, gone)->node, root = m->p->dirs[m->p->diffs[gone].dir].root;
	struct stack_node lower;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < l->names.n; i++) {
			const char *name = stack_name(&l->names, i);

			/* vote_upper() counts it already, as the upper's entry of this name. */
			if (moved_find_name(&m->index, node, name, strlen(name), true) !=
				    CHANGES_NONE ||
			    look_lower(m, l, i, &lower) <= 0)
				continue;
			b->total += pass == 0;
			if (pass == 0)
				vote_lower(m, b, root, name, &lower);
			else if (S_ISDIR(lower.mode))
				vote_directory(m, b, name);
		}
	}
}

static uint32_t elect(const struct moved *m, uint32_t gone, const struct moved_lower *l)
{
	const struct changes_diff *g = &m->p->diffs[gone];
	uint32_t root = m->p->dirs[g->dir].root, best = CHANGES_NONE, most = 0;
	struct ballot b = { .n = 0 };

	vote_lowers(m, &b, gone, l);
	vote_upper(m, &b, root, side_of(m, gone)->node);
	if (b.total == 0)
		return find_empty(m, g);
	for (int i = 0; i < b.n; i++)
		if (b.votes[i] > most && 2 * b.votes[i] >= b.total) {
			most = b.votes[i];
			best = b.dir[i];
		}
	return best;
}

/* --- entries of a pair --- */

static void pair_up(struct moved *m, uint32_t gone, uint32_t new)
{
	m->p->diffs[gone].match = new;
	m->p->diffs[new].match = gone;
}

/* The number of a deleted directory; makes one if only the lower had the directory. */
static int gone_node(struct moved *m, uint32_t gone, uint32_t *ret)
{
	const struct changes_diff *d = &m->p->diffs[gone];
	char name[256];
	int r;

	*ret = side_of(m, gone)->node;
	if (*ret != CHANGES_NONE)
		return 0;
	/* Copy the name: the arena that holds it may move. */
	if (!str_copy(name, sizeof name, (struct str){ moved_name(&m->index, d), d->name_len }))
		return 0;
	r = changes_report_dir(m->p, d->dir, m->p->dirs[d->dir].root, str_of(name), ret);
	if (*ret != CHANGES_NONE)
		m->p->dirs[*ret].gone = gone;
	side_of(m, gone)->node = *ret;
	return r;
}

static int add_lower(struct moved *m, uint32_t node, uint32_t above, const char *name,
		     const struct stack_node *lower, uint32_t *ret)
{
	struct changes_rec rec = { .ino = lower->ino,
				   .ctime_ns = lower->ctime_ns,
				   .mtime_ns = lower->mtime_ns,
				   .size = lower->size,
				   .mode = lower->mode };
	int r = changes_report_add(m->p, CHANGES_GONE_LOWER, node, str_of(name), &rec,
				   m->p->diffs[above].time_ns, ret);

	return r < 0 || *ret == CHANGES_NONE ? r : moved_index_add(&m->index, *ret);
}

static int part_of(const struct moved_lower *l, int layer)
{
	for (int i = 0; i < l->dir.n; i++)
		if (l->dir.parts[i].layer == layer)
			return l->dir.parts[i].fd;
	return FD_NONE;
}

/* A sandbox can restore size and mtime: only the content proves that nothing was written. */
static void compare(struct moved *m, uint32_t new, int upper, int lower, const char *name)
{
	struct changes_diff *d = &m->p->diffs[new];
	enum changes_content c = CONTENT_SAME;

	if (S_ISREG(d->mode) || S_ISLNK(d->mode))
		c = changes_compare_at(upper, lower, name, d->mode, d->size, &m->compared);
	d->flags |= c == CONTENT_SAME ? CHANGES_SAME : c == CONTENT_OTHER ? CHANGES_OTHER : 0;
}

static int expand(struct moved *m, uint32_t gone, uint32_t new, const struct moved_lower *l,
		  int depth);

static int expand_dir(struct moved *m, uint32_t gone, uint32_t new, int depth)
{
	auto_free struct moved_lower *l = calloc(1, sizeof *l);
	int r = l ? list_lower(m, &m->p->diffs[gone], l) : -ENOMEM;

	if (r == 0)
		r = expand(m, gone, new, l, depth);
	if (l)
		lower_done(l);
	return r;
}

/* One entry of the lower; upper: the new directory. */
static int expand_entry(struct moved *m, uint32_t gone, uint32_t new, const struct moved_lower *l,
			size_t i, int upper, int depth)
{
	const char *name = stack_name(&l->names, i);
	struct stack_node node;
	struct changes_diff *a, *b;
	uint32_t from, to;
	int r;

	if (look_lower(m, l, i, &node) <= 0 ||
	    moved_find_name(&m->index, side_of(m, gone)->node, name, strlen(name), true) !=
		    CHANGES_NONE)
		return 0;
	r = add_lower(m, side_of(m, gone)->node, gone, name, &node, &from);
	to = moved_find_name(&m->index, side_of(m, new)->node, name, strlen(name), false);
	if (r < 0 || from == CHANGES_NONE || to == CHANGES_NONE || side_of(m, to)->taken)
		return r;
	a = &m->p->diffs[from];
	b = &m->p->diffs[to];
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT) || b->match != CHANGES_NONE)
		return 0;
	if (S_ISDIR(a->mode)) {
		pair_up(m, from, to);
		return expand_dir(m, from, to, depth + 1);
	}
	if (moved_find_inode(&m->index, b) != CHANGES_NONE) /* it came from elsewhere */
		return 0;
	pair_up(m, from, to);
	if (a->size == b->size && a->mtime_ns == b->mtime_ns)
		compare(m, to, upper, part_of(l, node.layer), name);
	return 0;
}

/* Directories that the upper had: init replaced them too, so their own inodes are gone. */
static int expand_upper(struct moved *m, uint32_t gone, uint32_t new, int depth)
{
	uint32_t node = side_of(m, gone)->node;
	uint32_t i = first_gone(m, node);
	int r = 0;

	for (; i != CHANGES_NONE && r == 0; i = side_of(m, i)->sibling) {
		const struct changes_diff *d = &m->p->diffs[i];
		uint32_t to = moved_find_name(&m->index, side_of(m, new)->node,
					      moved_name(&m->index, d), d->name_len, false);

		if (d->kind != CHANGES_GONE || !S_ISDIR(d->mode) || side_of(m, i)->taken ||
		    d->match != CHANGES_NONE || to == CHANGES_NONE || side_of(m, to)->taken ||
		    !S_ISDIR(m->p->diffs[to].mode) || m->p->diffs[to].match != CHANGES_NONE)
			continue;
		pair_up(m, i, to);
		r = expand_dir(m, i, to, depth + 1);
	}
	return r;
}

static int expand(struct moved *m, uint32_t gone, uint32_t new, const struct moved_lower *l,
		  int depth)
{
	const struct changes_diff *d = &m->p->diffs[new];
	auto_close int upper = FD_NONE;
	char path[LIMIT_PATH];
	uint32_t node;
	int r = gone_node(m, gone, &node);

	if (r < 0 || node == CHANGES_NONE || depth > DEPTH)
		return r;
	if (spell(m->p, d, path))
		upper = stack_open_at(m->p->roots[m->p->dirs[d->dir].root].upper_fd, path,
				      O_PATH | O_DIRECTORY | O_NOFOLLOW);
	for (size_t i = 0; i < l->names.n && r == 0; i++)
		r = expand_entry(m, gone, new, l, i, upper, depth);
	return r < 0 ? r : expand_upper(m, gone, new, depth);
}

static int try_directory(struct moved *m, uint32_t gone)
{
	auto_free struct moved_lower *l = calloc(1, sizeof *l);
	uint32_t new;
	int r = l ? list_lower(m, &m->p->diffs[gone], l) : -ENOMEM;

	if (r == 0) {
		new = elect(m, gone, l);
		if (new != CHANGES_NONE) {
			pair_up(m, gone, new);
			r = expand(m, gone, new, l, 0);
		}
	}
	if (l)
		lower_done(l);
	return r;
}

int changes_moved(struct changes_report *p)
{
	auto_done(moved_done) struct moved m = { .p = p, .root = CHANGES_NONE };
	bool gone = false, new = false;
	int r;

	for (uint32_t i = 0; i < p->ndiffs; i++) {
		gone |= moved_is_gone(&p->diffs[i]) && S_ISDIR(p->diffs[i].mode);
		new |= p->diffs[i].kind == CHANGES_NEW &&S_ISDIR(p->diffs[i].mode);
	}
	if (!gone || !new)
		return 0;
	r = moved_index_init(&m.index, p);
	if (r < 0 || !follow_inodes(&m))
		return r;
	/* The list grows: a name that is gone from a moved directory may be a moved directory. */
	for (uint32_t i = 0; i < p->ndiffs && r == 0; i++) {
		const struct changes_diff *d = &p->diffs[i];

		if (moved_is_gone(d) && S_ISDIR(d->mode) && d->match == CHANGES_NONE &&
		    !side_of(&m, i)->taken)
			r = try_directory(&m, i);
	}
	return r;
}
