/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/compare.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "diff/content.h"
#include "diff/start.h"
#include "wire/name_alias.h"

/* Directories still to compare. */
struct pending {
	char *path;
	bool in_old, in_new;
	struct stack_mask old, new;
};

struct walk {
	struct diff *d;
	const struct diff_scope *scope;
	struct pending *todo;
	size_t ntodo, cap;
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->ntodo; i++)
		free(w->todo[i].path);
	free(w->todo);
}
DEFINE_AUTO(struct walk, walk_done)

static void entry_done(struct diff_entry *en)
{
	free(en->path);
	free(en->old_path);
}

void diff_done(struct diff *d)
{
	for (size_t i = 0; i < d->n; i++)
		entry_done(&d->v[i]);
	free(d->v);
	free(d->unread_first);
	*d = (struct diff){ 0 };
}

/* True if path is top or below it. */
static bool within(const char *path, const char *top)
{
	size_t n = strlen(top);

	return n == 0 || (strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

static bool wanted(const struct diff_scope *s, const char *path, bool dir)
{
	for (int i = 0; i < s->nskip; i++)
		if (within(path, s->skip[i]))
			return false;
	for (int i = 0; i < s->npaths; i++)
		if (within(path, s->paths[i]) || (dir && within(s->paths[i], path)))
			return true;
	return s->npaths == 0;
}

/* True for directories on the way to a skipped path: cay made them, or they existed. */
static bool leads_to_skipped(const struct diff_scope *s, const char *path)
{
	for (int i = 0; i < s->nskip; i++)
		if (within(s->skip[i], path))
			return true;
	return false;
}

static void note_unread(struct diff *d, const char *path)
{
	if (d->unread++ == 0)
		d->unread_first = strdup(path);
}

static int add_entry(struct diff *d, const struct diff_entry *en)
{
	if (d->n == LIMIT_DIFF_ENTRIES)
		return -E2BIG;
	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 64;
		void *p = reallocarray(d->v, cap, sizeof *d->v);

		if (!p)
			return -ENOMEM;
		d->v = p;
		d->cap = cap;
	}
	d->v[d->n] = *en;
	d->v[d->n].path = strdup(en->path);
	return d->v[d->n].path ? (d->n++, 0) : -ENOMEM;
}

static int push(struct walk *w, const char *path, const struct stack_node *old,
		const struct stack_node *new)
{
	struct pending p = { .in_old = old && S_ISDIR(old->mode),
			     .in_new = new &&S_ISDIR(new->mode) };

	if (w->ntodo == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		void *grown = reallocarray(w->todo, cap, sizeof *w->todo);

		if (!grown)
			return -ENOMEM;
		w->todo = grown;
		w->cap = cap;
	}
	if (p.in_old)
		p.old = old->mask;
	if (p.in_new)
		p.new = new->mask;
	p.path = strdup(path);
	if (!p.path)
		return -ENOMEM;
	w->todo[w->ntodo++] = p;
	return 0;
}

int diff_read_link(const struct stack *s, const struct stack_node *n, const char *path,
		   struct buf *out)
{
	auto_close int fd = stack_open_at(s->layers[n->layer].fd, path, O_PATH | O_NOFOLLOW);
	char text[PATH_MAX];
	ssize_t len = fd < 0 ? -1 : readlinkat(fd, "", text, sizeof text);

	if (len < 0)
		return fd < 0 ? fd : -errno;
	return buf_add(out, text, (size_t)len);
}

int diff_open_old(const struct diff *d, const struct diff_entry *en)
{
	if (en->from_copy)
		return d->start->open_copy(d->start->ctx, diff_old_path(en));
	return stack_open_file(d->old, en->old.layer, diff_old_path(en));
}

int diff_open_new(const struct diff *d, const struct diff_entry *en)
{
	return stack_open_file(d->new, en->new.layer, en->path);
}

static int links_differ(const struct diff *d, const struct diff_entry *en)
{
	auto_done(buf_done) struct buf a = BUF_INIT(PATH_MAX), b = BUF_INIT(PATH_MAX);
	int r = diff_read_link(d->old, &en->old, en->path, &a);

	if (r == 0)
		r = diff_read_link(d->new, &en->new, en->path, &b);
	return r < 0 ? r : !str_eq(buf_str(&a), buf_str(&b));
}

static int files_differ(const struct diff *d, const struct diff_entry *en)
{
	auto_close int a = FD_NONE, b = FD_NONE;
	int r;

	if (en->old.size != en->new.size)
		return 1;
	a = diff_open_old(d, en);
	b = diff_open_new(d, en);
	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	r = content_same(a, b);
	return r < 0 ? r : !r;
}

static int content_differs(const struct diff *d, const struct diff_entry *en)
{
	const struct stack_node *a = &en->old, *b = &en->new;

	if (S_ISREG(a->mode))
		return files_differ(d, en);
	if (S_ISLNK(a->mode))
		return links_differ(d, en);
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode))
		return a->rdev_major != b->rdev_major || a->rdev_minor != b->rdev_minor;
	return 0;
}

static bool xattrs_differ(const struct diff *d, int old_dir, int new_dir, const char *name)
{
	auto_done(buf_done) struct buf a = BUF_INIT(2 * LIMIT_XATTRS);
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_XATTRS);

	if (old_dir < 0 || new_dir < 0)
		return false;
	if (stack_xattrs(d->old, old_dir, name, &a) < 0 ||
	    stack_xattrs(d->new, new_dir, name, &b) < 0)
		return false;
	return !str_eq(buf_str(&a), buf_str(&b));
}

static int part_fd(const struct stack_dir *d, int layer)
{
	for (int i = 0; i < d->n; i++)
		if (d->parts[i].layer == layer)
			return d->parts[i].fd;
	return FD_NONE;
}

/* Both sides exist. */
static int compare_both(struct walk *w, struct diff_entry *en, int old_dir, int new_dir,
			const char *name)
{
	const struct stack_node *a = &en->old, *b = &en->new;
	int r = 0;

	if (a->dev == b->dev && a->ino == b->ino)
		return 0;
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT)) {
		en->kind = DIFF_TYPE;
		en->content = true;
		return add_entry(w->d, en);
	}
	r = content_differs(w->d, en);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0)
		note_unread(w->d, en->path);
	en->kind = DIFF_CHANGED;
	en->content = r != 0;
	en->unread = r < 0;
	en->mode = (a->mode & 07777) != (b->mode & 07777) && !S_ISLNK(a->mode);
	/* Without root there is only one uid, whatever owner the host file has. */
	en->owner = !w->d->new->userxattr && (a->uid != b->uid || a->gid != b->gid);
	en->xattr = xattrs_differ(w->d, old_dir, new_dir, name);
	return en->content || en->mode || en->owner || en->xattr ? add_entry(w->d, en) : 0;
}

struct places {
	struct stack_dir old, new;
};

static int look_at(struct walk *w, const struct places *at, const char *path, const char *name)
{
	struct diff_entry en = { .path = (char *)path };
	int a = stack_look(w->d->old, &at->old, name, &en.old);
	int b = stack_look(w->d->new, &at->new, name, &en.new);
	bool dirs = (a > 0 && S_ISDIR(en.old.mode)) || (b > 0 && S_ISDIR(en.new.mode));
	int r = 0;

	if (a < 0 || b < 0) {
		note_unread(w->d, path);
		return 0;
	}
	if (!(a || b) || !wanted(w->scope, path, dirs))
		return 0;
	if (wanted(w->scope, path, false)) {
		en.kind = a ? DIFF_DELETED : DIFF_ADDED;
		en.content = true;
		if (a && b)
			r = compare_both(w, &en, part_fd(&at->old, en.old.layer),
					 part_fd(&at->new, en.new.layer), name);
		else if (!(b && S_ISDIR(en.new.mode) && leads_to_skipped(w->scope, path)))
			r = add_entry(w->d, &en);
	}
	if (r == 0 && dirs)
		r = push(w, path, a ? &en.old : NULL, b ? &en.new : NULL);
	return r;
}

/* Lists the names of all layers except the lower layers that both sides share. */
static int list(struct walk *w, const struct places *at, struct stack_names *names)
{
	int a = at->old.n, b = at->new.n, r = 0;

	while (a && b &&
	       stack_same_layer(&w->d->old->layers[at->old.parts[a - 1].layer],
				&w->d->new->layers[at->new.parts[b - 1].layer]))
		a--, b--;
	for (int i = 0; i < a && r == 0; i++)
		r = stack_names_add(names, at->old.parts[i].fd);
	for (int i = 0; i < b && r == 0; i++)
		r = stack_names_add(names, at->new.parts[i].fd);
	stack_names_sort(names);
	return r;
}

static void places_done(struct places *p)
{
	stack_dir_done(&p->old);
	stack_dir_done(&p->new);
}
DEFINE_AUTO(struct places, places_done)

static int walk_dir(struct walk *w, const struct pending *p)
{
	auto_done(places_done) struct places at = { 0 };
	auto_done(stack_names_done) struct stack_names names = { 0 };
	auto_done(buf_done) struct buf path = BUF_INIT((size_t)LIMIT_WALK_DEPTH * 256);
	size_t keep;
	int r = 0;

	if (p->in_old)
		r = stack_dir_open(w->d->old, p->path, &p->old, &at.old);
	if (r == 0 && p->in_new)
		r = stack_dir_open(w->d->new, p->path, &p->new, &at.new);
	if (r == 0 && (at.old.denied || at.new.denied))
		note_unread(w->d, p->path);
	if (r == 0)
		r = list(w, &at, &names);
	if (r == 0)
		r = buf_printf(&path, "%s%s", p->path, p->path[0] ? "/" : "");
	keep = path.len;
	for (size_t i = 0; i < names.n && r == 0; i++) {
		path.len = keep;
		r = buf_add_c(&path, stack_name(&names, i));
		if (r == 0)
			r = look_at(w, &at, path.data, stack_name(&names, i));
	}
	return r;
}

static int walk_all(struct walk *w)
{
	struct diff_entry en = { .path = "" };
	int r = stack_root(w->d->old, &en.old);

	if (r == 0)
		r = stack_root(w->d->new, &en.new);
	if (r == 0 && wanted(w->scope, "", false) && w->scope->npaths == 0)
		r = compare_both(w, &en, w->d->old->layers[0].fd, w->d->new->layers[0].fd, "");
	if (r == 0)
		r = push(w, "", &en.old, &en.new);
	while (r == 0 && w->ntodo) {
		struct pending p = w->todo[--w->ntodo];

		r = walk_dir(w, &p);
		free(p.path);
	}
	return r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct diff_entry *)a)->path, ((const struct diff_entry *)b)->path);
}

void diff_sort(struct diff *d)
{
	if (d->n)
		qsort(d->v, d->n, sizeof *d->v, by_path);
	d->sorted = d->n;
}

const struct diff_entry *diff_find(const struct diff *d, const char *path)
{
	const struct diff_entry key = { .path = (char *)path };

	return d->sorted ? bsearch(&key, d->v, d->sorted, sizeof key, by_path) : NULL;
}

/* Index of the first entry at or after a path. */
static size_t first_at(const struct diff *d, const char *path)
{
	size_t low = 0, high = d->sorted;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(d->v[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool diff_has_alias(const struct diff *d, struct str dir, const char *name)
{
	auto_free char *path = strndup(dir.n ? dir.p : "", dir.n);
	size_t i = path ? first_at(d, path) : 0;

	while (path && i < d->sorted && strncmp(d->v[i].path, path, dir.n) == 0) {
		const char *rest = d->v[i].path + dir.n;
		size_t n = strcspn(rest, "/");
		auto_free char *after = NULL;

		if (d->v[i].new.mode && name_is_alias((struct str){ rest, n }, name))
			return true;
		if (!rest[n]) {
			i++;
			continue;
		}
		/* '0' follows '/': this skips everything below the directory. */
		if (asprintf(&after, "%s%.*s0", path, (int)n, rest) < 0)
			return true;
		i = first_at(d, after);
	}
	return !path;
}

/* True if a layer that is not common to both sides has the path, or one of its parents. */
static bool is_spoken_of(const struct diff *d, const char *path)
{
	auto_free char *part = strdup(path);

	for (int i = 0; part && i < d->new->n - d->old->n; i++)
		for (size_t n = 0; path[n];) {
			auto_close int fd = FD_NONE;
			struct stat st;

			n += strcspn(path + n + (n > 0), "/") + (n > 0);
			part[n] = '\0';
			fd = stack_open_at(d->new->layers[i].fd, part, O_PATH | O_NOFOLLOW);
			part[n] = path[n];
			if (fd < 0)
				break;
			if (!path[n] || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
				return true;
		}
	return !part;
}

int diff_add_deleted(struct diff *d, const char *path)
{
	struct diff_entry en = { .kind = DIFF_DELETED, .path = (char *)path, .content = true };

	if (diff_find(d, path))
		return 0;
	if (is_spoken_of(d, path) || stack_find(d->old, path, &en.old) <= 0 || S_ISDIR(en.old.mode))
		return 0;
	return add_entry(d, &en);
}

int diff_compare(const struct stack *old, const struct stack *new, const struct diff_scope *scope,
		 struct diff *ret, struct err *e)
{
	auto_done(walk_done) struct walk w = { .d = ret, .scope = scope };
	int r;

	*ret = (struct diff){ .old = old, .new = new };
	r = walk_all(&w);
	if (r == 0 && scope->renames)
		r = diff_find_renames(ret);
	if (r == -E2BIG)
		return err_set(e, ERR_LIMIT,
			       "more than %d changes, or a directory with too many names: name "
			       "paths to compare less",
			       LIMIT_DIFF_ENTRIES);
	if (r < 0)
		return err_sys(e, -r, "compare the files");
	diff_sort(ret);
	if (scope->renames && diff_find_moved_dirs(ret) < 0)
		return err_sys(e, ENOMEM, "compare the files");
	return 0;
}
