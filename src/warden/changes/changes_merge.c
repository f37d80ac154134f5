/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_merge.h"

#include <errno.h>
#include <sys/stat.h>

#include "warden/changes/changes_base.h"

/* A walk of this size takes about as long as starting a process. */
enum { SHORT_ENTRIES = 256, SHORT_COMPARED = 256 << 10 };

/* The report's number of the directory on the stack; also enters all directories above it. */
static int dir_of(struct changes_merge *m, uint32_t *ret)
{
	struct changes_tree *t = &m->tree;
	uint32_t i = t->nframes;

	while (i > 0 && t->frames[i - 1].node == CHANGES_NONE)
		i--;
	for (; i < t->nframes; i++) {
		struct changes_frame *f = &t->frames[i];
		size_t end = i + 1 < t->nframes ? t->frames[i + 1].path : t->path.len;
		struct str name = { t->path.data ? t->path.data + f->name : "", end - f->name };
		uint32_t up = i ? t->frames[i - 1].node : CHANGES_NONE;
		int r = i && up == CHANGES_NONE
				? 0
				: changes_report_dir(m->report, up, m->root, name, &f->node);

		if (r < 0)
			return r;
		if (f->node == CHANGES_NONE)
			break;
		m->report->dirs[f->node].new = f->new;
		m->report->dirs[f->node].gone = f->gone;
	}
	*ret = changes_tree_top(t)->node;
	return 0;
}

static int add(struct changes_merge *m, enum changes_kind kind, struct str name,
	       const struct changes_rec *rec, uint32_t *ret)
{
	bool gone = kind == CHANGES_GONE || kind == CHANGES_GONE_LOWER;
	uint32_t dir;
	int r = dir_of(m, &dir);

	*ret = CHANGES_NONE;
	if (r < 0)
		return r;
	return changes_report_add(m->report, kind, dir, name, rec,
				  gone ? changes_tree_ctime(&m->tree) : rec->ctime_ns, ret);
}

static void set_flags(struct changes_merge *m, uint32_t diff, uint8_t flags)
{
	if (diff != CHANGES_NONE)
		m->report->diffs[diff].flags = flags;
}

/* Record a deleted directory that contains other deleted entries. */
static int enter_gone(struct changes_merge *m, uint32_t up, struct str name, uint32_t depth,
		      uint32_t diff)
{
	uint32_t *dir = &m->gone_dirs[depth];
	int r;

	*dir = CHANGES_NONE;
	if (diff == CHANGES_NONE)
		return 0;
	r = changes_report_dir(m->report, up, m->root, name, dir);
	if (*dir != CHANGES_NONE)
		m->report->dirs[*dir].gone = diff;
	return r;
}

/* Drop the index's records below `depth`, whose directory is gone. */
static int drop_below(struct changes_merge *m, uint32_t depth, uint64_t time_ns)
{
	struct changes_reader *o = &m->old;
	int r = 0;

	for (; r == 0 && !o->end && o->rec.depth > depth; r = changes_reader_next(o)) {
		uint32_t up = m->gone_dirs[o->rec.depth - 1], diff = CHANGES_NONE;

		r = changes_writer_drop(&m->new);
		if (r == 0 && m->report && !(o->rec.flags & CHANGES_WHITEOUT))
			r = changes_report_add(m->report, CHANGES_GONE, up, o->name, &o->rec,
					       time_ns, &diff);
		if (r == 0 && S_ISDIR(o->rec.mode))
			r = enter_gone(m, up, o->name, o->rec.depth, diff);
		if (r < 0)
			return r;
	}
	return r;
}

/* Skip the reader's record, which is no longer a directory, and everything that was in it. */
static int drop(struct changes_merge *m, uint32_t diff)
{
	uint32_t depth = m->old.rec.depth, dir = CHANGES_NONE;
	bool is_dir = S_ISDIR(m->old.rec.mode);
	int r = is_dir && m->report ? dir_of(m, &dir) : 0;

	if (r == 0 && is_dir)
		r = enter_gone(m, dir, m->old.name, depth, diff);
	if (r == 0)
		r = changes_reader_next(&m->old);
	if (r < 0 || !is_dir || m->old.end || m->old.rec.depth <= depth)
		return r;
	return drop_below(m, depth, changes_tree_ctime(&m->tree));
}

static int gone(struct changes_merge *m)
{
	uint32_t diff = CHANGES_NONE;
	int r = changes_writer_drop(&m->new);

	if (r == 0 && m->report && !(m->old.rec.flags & CHANGES_WHITEOUT))
		r = add(m, CHANGES_GONE, m->old.name, &m->old.rec, &diff);
	return r < 0 ? r : drop(m, diff);
}

static bool same_type(const struct changes_rec *a, const struct changes_rec *b)
{
	return (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

static bool same_content(const struct changes_rec *a, const struct changes_rec *b)
{
	return S_ISDIR(a->mode) || (a->mtime_ns == b->mtime_ns && a->size == b->size);
}

/* Flags of a copy-up that differs from the lower's entry; 0: no difference. */
static uint8_t copy_flags(struct changes_merge *m, const struct changes_node *n,
			  const struct changes_rec *lower)
{
	enum changes_content content = CONTENT_OTHER;

	if (S_ISDIR(n->rec.mode))
		content = CONTENT_SAME;
	else if (same_content(lower, &n->rec))
		content = changes_tree_compare(&m->tree, n);
	if (content == CONTENT_OTHER)
		return CHANGES_EXISTED;
	if (lower->mode != n->rec.mode)
		return CHANGES_EXISTED | CHANGES_MODE_ONLY;
	return content == CONTENT_UNKNOWN ? CHANGES_EXISTED | CHANGES_TOUCHED : 0;
}

/* A name that the index does not have. 0 if it equals the lower's entry. */
static int diff_copy(struct changes_merge *m, const struct changes_node *n, uint32_t *ret_gone,
		     uint32_t *ret_new)
{
	struct changes_rec lower;
	bool is_dir = S_ISDIR(n->rec.mode), opaque = n->rec.flags & CHANGES_OPAQUE;
	int found = changes_tree_lower(&m->tree, n->name, &lower);
	uint8_t flags;
	int r = 0;

	if (!found && is_dir && !opaque && changes_tree_is_copy(&m->tree, n))
		return 0;
	if (!found)
		return add(m, CHANGES_NEW, n->name, &n->rec, ret_new);
	if (!same_type(&lower, &n->rec) || (is_dir && opaque)) {
		r = add(m, CHANGES_GONE_LOWER, n->name, &lower, ret_gone);
		return r < 0 ? r : add(m, CHANGES_NEW, n->name, &n->rec, ret_new);
	}
	flags = copy_flags(m, n, &lower);
	if (!flags)
		return 0;
	if (S_ISREG(lower.mode))
		changes_base_save(&m->tree, n->name);
	r = add(m, CHANGES_NEW, n->name, &n->rec, ret_new);
	set_flags(m, *ret_new, flags);
	return r;
}

/* The same inode as before. Its ctime is the only time that a sandbox cannot restore. */
static int diff_same(struct changes_merge *m, const struct changes_node *n)
{
	const struct changes_rec *old = &m->old.rec;
	uint8_t flags = 0;
	uint32_t diff;
	int r;

	if (same_content(old, &n->rec)) {
		flags = old->mode != n->rec.mode ? CHANGES_MODE_ONLY : CHANGES_TOUCHED;
		if (flags == CHANGES_TOUCHED &&
		    (S_ISDIR(n->rec.mode) || old->ctime_ns == n->rec.ctime_ns))
			return 0;
	}
	r = add(m, CHANGES_CHANGED, n->name, &n->rec, &diff);
	set_flags(m, diff, flags);
	return r;
}

/* A name that the index has as an entry. */
static int diff_known(struct changes_merge *m, const struct changes_node *n, uint32_t *ret_gone,
		      uint32_t *ret_new)
{
	const struct changes_rec *old = &m->old.rec;
	int r;

	if (same_type(old, &n->rec) && old->ino == n->rec.ino && old->btime_ns == n->rec.btime_ns)
		return diff_same(m, n);
	r = add(m, CHANGES_GONE, n->name, old, ret_gone);
	if (r == 0)
		r = add(m, CHANGES_NEW, n->name, &n->rec, ret_new);
	if (r < 0 || *ret_gone == CHANGES_NONE || *ret_new == CHANGES_NONE)
		return r;
	if (same_type(old, &n->rec)) {
		m->report->diffs[*ret_gone].pair = *ret_new;
		m->report->diffs[*ret_new].pair = *ret_gone;
	}
	return 0;
}

static int diff_whiteout(struct changes_merge *m, const struct changes_node *n, bool known,
			 uint32_t *ret_gone)
{
	struct changes_rec lower = { 0 };

	if (known && m->old.rec.flags & CHANGES_WHITEOUT)
		return 0;
	if (known)
		return add(m, CHANGES_GONE, n->name, &m->old.rec, ret_gone);
	(void)changes_tree_lower(&m->tree, n->name, &lower);
	if (S_ISREG(lower.mode)) /* it may reappear */
		changes_base_save(&m->tree, n->name);
	return add(m, CHANGES_GONE_LOWER, n->name, &lower, ret_gone);
}

static int diff(struct changes_merge *m, const struct changes_node *n, bool known,
		uint32_t *ret_gone, uint32_t *ret_new)
{
	*ret_gone = *ret_new = CHANGES_NONE;
	if (!m->report)
		return 0;
	if (n->rec.flags & CHANGES_WHITEOUT)
		return diff_whiteout(m, n, known, ret_gone);
	if (!known)
		return diff_copy(m, n, ret_gone, ret_new);
	if (m->old.rec.flags & CHANGES_WHITEOUT)
		return add(m, CHANGES_NEW, n->name, &n->rec, ret_new);
	return diff_known(m, n, ret_gone, ret_new);
}

/* Keep the index's records below a directory that cannot be listed. */
static int keep_below(struct changes_merge *m, uint32_t depth)
{
	int r = 0;

	while (r == 0 && !m->old.end && m->old.rec.depth > depth) {
		r = changes_writer_keep(&m->new, &m->old);
		if (r == 0)
			r = changes_reader_next(&m->old);
	}
	return r;
}

static int enter(struct changes_merge *m, struct changes_node *n, uint32_t gone_diff,
		 uint32_t new_diff)
{
	uint32_t depth = n->rec.depth;
	int r = changes_tree_push(&m->tree, n);

	if (r <= 0)
		return r < 0 ? r : keep_below(m, depth);
	changes_tree_top(&m->tree)->node = CHANGES_NONE;
	changes_tree_top(&m->tree)->gone = gone_diff;
	changes_tree_top(&m->tree)->new = new_diff;
	return 0;
}

static int write_record(struct changes_merge *m, const struct changes_node *n, bool known)
{
	if (known && memcmp(&m->old.rec, &n->rec, sizeof n->rec) == 0)
		return changes_writer_keep(&m->new, &m->old);
	return changes_writer_put(&m->new, &n->rec, n->name);
}

static int visit(struct changes_merge *m, struct changes_node *n, bool known)
{
	uint32_t gone_diff, new_diff;
	bool is_dir = S_ISDIR(n->rec.mode);
	int r = diff(m, n, known, &gone_diff, &new_diff);

	if (r == 0)
		r = write_record(m, n, known);
	if (r == 0 && known)
		r = is_dir ? changes_reader_next(&m->old) : drop(m, gone_diff);
	if (r == 0 && is_dir)
		r = enter(m, n, gone_diff, new_diff);
	return r;
}

/* Process one name of the innermost directory, in the index, in the tree, or in both. */
static int step(struct changes_merge *m)
{
	bool in_old = !m->old.end && m->old.rec.depth == m->tree.nframes;
	struct str name = changes_tree_peek(&m->tree);
	struct changes_node n;
	int cmp, r;

	if (!in_old && !name.p) {
		changes_tree_pop(&m->tree);
		return 0;
	}
	cmp = !in_old ? 1 : !name.p ? -1 : changes_name_cmp(m->old.name, name);
	if (cmp < 0)
		return gone(m);
	r = changes_tree_look(&m->tree, cmp == 0 ? &m->old.rec : NULL, &n);
	if (r <= 0)
		return r;
	r = visit(m, &n, cmp == 0);
	fd_close(&n.fd);
	if (r == 0 && m->only_short &&
	    (++m->entries > SHORT_ENTRIES || m->tree.compared > SHORT_COMPARED))
		return -EOVERFLOW;
	return r;
}

static int merge_root(struct changes_merge *m, const struct changes_root *root)
{
	struct changes_node n;
	bool known = !m->old.end;
	int r = changes_tree_root(&m->tree, root, &n);

	if (r < 0)
		return r;
	r = write_record(m, &n, known);
	if (r == 0 && known)
		r = changes_reader_next(&m->old);
	if (r == 0)
		r = enter(m, &n, CHANGES_NONE, CHANGES_NONE);
	fd_close(&n.fd);
	while (r == 0 && m->tree.nframes > 0)
		r = step(m);
	return r;
}

int changes_merge(struct changes_merge *m, const struct changes_root *roots, int nroots)
{
	int r = changes_reader_next(&m->old);

	for (int i = 0; r == 0 && i < nroots; i++) {
		m->root = (uint32_t)i;
		r = merge_root(m, &roots[i]);
	}
	return r;
}
