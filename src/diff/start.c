/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/start.h"

#include <errno.h>
#include <sys/stat.h>

static bool has_copy(const struct diff_start *s, const char *path)
{
	auto_close int fd = s->open_copy ? s->open_copy(s->ctx, path) : FD_NONE;

	return fd >= 0;
}

/* True if the host has written to this file since, except through cay apply. */
static bool is_changed(const struct diff_start *s, const struct stack_node *n, const char *path,
		       int host_layer, uint64_t base_ns)
{
	if (!n->mode || S_ISDIR(n->mode) || n->layer < host_layer || n->ctime_ns <= base_ns)
		return false;
	return !s->is_ours || !s->is_ours(s->ctx, path, n->ino, n->ctime_ns, n->size);
}

/* The same for the old side, which may be a frozen copy with its own inode. */
static bool is_old_changed(const struct diff_start *s, const struct diff_entry *en)
{
	struct stack_node n = en->old;

	if (s->was && n.mode && n.layer >= s->old_host &&
	    !s->was(s->was_ctx, diff_old_path(en), &n))
		return false;
	return is_changed(s, &n, diff_old_path(en), s->old_host, s->old_ns);
}

/* True if the host has removed the file that the sandbox changed, so that it looks new. */
static bool is_removed(const struct diff_start *s, const struct diff_entry *en)
{
	int ours = s->was_ours ? s->was_ours(s->ctx, en->path) : 0;

	if (en->kind != DIFF_ADDED || !S_ISREG(en->new.mode) || ours < 0)
		return false;
	return ours > 0 || has_copy(s, en->path);
}

static void find_one(struct diff *d, const struct diff_start *s, struct diff_entry *en)
{
	bool old_changed = is_old_changed(s, en);

	if (is_removed(s, en)) {
		en->kind = DIFF_CHANGED;
		en->old = en->new;
		old_changed = true;
	}
	/* An entry without content has nothing to undo. */
	if (!en->content)
		return;
	if (old_changed && S_ISREG(en->old.mode))
		en->from_copy = has_copy(s, diff_old_path(en));
	en->host_changed = (old_changed && !en->from_copy) ||
			   is_changed(s, &en->new, en->path, s->new_host, s->new_ns);
	d->start = s;
}

void diff_find_start(struct diff *d, const struct diff_start *s)
{
	for (size_t i = 0; i < d->n; i++)
		find_one(d, s, &d->v[i]);
}
