/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds renamed directories: a deleted and an added directory are a pair if at least half of the
 * new one's entries were renamed from the old one, each keeping its name. The entries are sorted by
 * path, so in reverse order each directory comes after its contents.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "diff/compare.h"

/* Counts the entries of a new directory. */
struct tally {
	size_t from; /* index + 1 of the directory that most entries came from */
	uint32_t votes, entries;
};

struct dir_pairing {
	struct diff *d;
	struct tally *tally; /* one per entry */
};

/* Index + 1 of the directory that contains the path; 0: it is not an entry. */
static size_t parent_of(const struct diff *d, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	const struct diff_entry *en = dir ? diff_find(d, dir) : NULL;

	return en ? (size_t)(en - d->v) + 1 : 0;
}

static bool same_base(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return strcmp(x ? x + 1 : a, y ? y + 1 : b) == 0;
}

static void count_entry(struct dir_pairing *p, const struct diff_entry *en)
{
	size_t to = parent_of(p->d, en->path), from;
	struct tally *t = to ? &p->tally[to - 1] : NULL;

	if (!t || p->d->v[to - 1].kind != DIFF_ADDED)
		return;
	t->entries++;
	if (en->kind != DIFF_RENAMED || !same_base(en->path, en->old_path))
		return;
	from = parent_of(p->d, en->old_path);
	if (!from || p->d->v[from - 1].kind != DIFF_DELETED)
		return;
	if (t->votes == 0)
		t->from = from;
	t->votes += t->from == from;
}

static int join_dir(struct dir_pairing *p, struct diff_entry *en, const struct tally *t)
{
	struct diff_entry *gone = &p->d->v[t->from - 1];

	/* Skip it if its tally says that another directory has it already. */
	if (!S_ISDIR(gone->old.mode) || p->tally[t->from - 1].from)
		return 0;
	en->old_path = strdup(gone->path);
	if (!en->old_path)
		return -ENOMEM;
	p->tally[t->from - 1].from = 1;
	en->old = gone->old;
	en->kind = DIFF_RENAMED;
	en->percent = 100;
	en->content = false;
	en->mode = (gone->old.mode & 07777) != (en->new.mode & 07777);
	en->owner = gone->old.uid != en->new.uid || gone->old.gid != en->new.gid;
	return 0;
}

static int pair_dirs(struct dir_pairing *p)
{
	for (size_t i = p->d->n; i-- > 0;) {
		struct diff_entry *en = &p->d->v[i];
		const struct tally *t = &p->tally[i];

		if (en->kind == DIFF_ADDED && S_ISDIR(en->new.mode) && t->votes &&
		    2 * t->votes >= t->entries && join_dir(p, en, t) < 0)
			return -ENOMEM;
		if (en->kind != DIFF_DELETED)
			count_entry(p, en);
	}
	return 0;
}

/* Entries that only moved with their directory need no line of their own. */
static void mark_implied(struct dir_pairing *p)
{
	for (size_t i = 0; i < p->d->n; i++) {
		struct diff_entry *en = &p->d->v[i];
		size_t to, n;

		if (en->kind != DIFF_RENAMED || !same_base(en->path, en->old_path))
			continue;
		to = parent_of(p->d, en->path);
		if (!to || p->d->v[to - 1].kind != DIFF_RENAMED)
			continue;
		n = strlen(p->d->v[to - 1].old_path);
		en->implied = strncmp(en->old_path, p->d->v[to - 1].old_path, n) == 0 &&
			      en->old_path[n] == '/' && !strchr(en->old_path + n + 1, '/') &&
			      !en->content && !en->mode && !en->owner && !en->xattr;
	}
}

static void drop_joined(struct dir_pairing *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->d->n; i++) {
		struct diff_entry *en = &p->d->v[i];

		if (en->kind == DIFF_DELETED && p->tally[i].from)
			free(en->path);
		else
			p->d->v[kept++] = *en;
	}
	p->d->n = kept;
	p->d->sorted = kept;
}

int diff_find_moved_dirs(struct diff *d)
{
	auto_free struct tally *tally = calloc(d->n + 1, sizeof *tally);
	struct dir_pairing p = { .d = d, .tally = tally };
	int r = tally ? pair_dirs(&p) : -ENOMEM;

	if (r < 0)
		return r;
	drop_joined(&p);
	mark_implied(&p);
	return 0;
}
