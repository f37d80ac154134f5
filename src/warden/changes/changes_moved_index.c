/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_moved_index.h"

#include <errno.h>
#include <sys/stat.h>

enum { PROBES = 64 };

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t hash_text(uint64_t h, const char *p, size_t n)
{
	while (n--)
		h = mix(h, (unsigned char)*p++);
	return h;
}

static uint32_t name_slot(const struct moved_index *m, uint32_t dir, const char *name, size_t n,
			  bool gone)
{
	return (uint32_t)(hash_text(mix(dir, gone), name, n) >> 32) & (m->size - 1);
}

/* Ignore a directory's size: it depends on the file system. */
static uint32_t key_slot(const struct moved_index *m, uint32_t mode, uint64_t size,
			 uint64_t mtime_ns, const char *name, size_t n)
{
	uint64_t h = mix(mix(S_ISDIR(mode) ? 0 : size, mtime_ns), mode);

	return (uint32_t)(hash_text(h, name, n) >> 32) & (m->size - 1);
}

static uint32_t inode_slot(const struct moved_index *m, const struct changes_diff *d)
{
	return (uint32_t)(mix(mix(d->ino, d->btime_ns), d->mode & S_IFMT) >> 32) & (m->size - 1);
}

static void chain(uint32_t *slot, uint32_t *next, uint32_t i)
{
	*next = *slot;
	*slot = i;
}

/* Put difference i into the tables. */
int moved_index_add(struct moved_index *m, uint32_t i)
{
	const struct changes_diff *d = &m->p->diffs[i];
	const char *name = moved_name(m, d);
	struct moved_side *s;

	if (i >= m->cap_side) {
		uint32_t cap = 2 * m->cap_side + 64;
		void *grown = reallocarray(m->side, cap, sizeof *m->side);

		if (!grown)
			return -ENOMEM;
		m->side = grown;
		m->cap_side = cap;
	}
	s = &m->side[i];
	*s = (struct moved_side){ .node = CHANGES_NONE,
				  .sibling = CHANGES_NONE,
				  .now = CHANGES_NONE };
	s->by_name = s->by_key = s->by_inode = CHANGES_NONE;
	if (d->kind == CHANGES_CHANGED)
		return 0;
	chain(&m->names[name_slot(m, d->dir, name, d->name_len, moved_is_gone(d))], &s->by_name, i);
	if (d->kind == CHANGES_NEW)
		chain(&m->keys[key_slot(m, d->mode, d->size, d->mtime_ns, name, d->name_len)],
		      &s->by_key, i);
	if (d->kind == CHANGES_NEW && S_ISDIR(d->mode))
		chain(&m->empties[key_slot(m, d->mode, 0, d->mtime_ns, "", 0)], &s->by_inode, i);
	if (d->kind == CHANGES_GONE)
		chain(&m->inodes[inode_slot(m, d)], &s->by_inode, i);
	if (moved_is_gone(d) && d->dir < m->ndirs)
		chain(&m->first[d->dir], &s->sibling, i);
	return 0;
}

int moved_index_init(struct moved_index *m, struct changes_report *p)
{
	size_t bytes;

	*m = (struct moved_index){ .p = p };
	for (m->size = 64; m->size < 2 * p->ndiffs; m->size *= 2)
		;
	m->ndirs = p->ndirs;
	bytes = m->size * sizeof *m->names;
	m->names = malloc(bytes);
	m->keys = malloc(bytes);
	m->inodes = malloc(bytes);
	m->empties = malloc(bytes);
	m->first = malloc((m->ndirs + 1) * sizeof *m->first);
	if (!m->names || !m->keys || !m->inodes || !m->empties || !m->first)
		return -ENOMEM;
	memset(m->names, 0xff, bytes); /* CHANGES_NONE */
	memset(m->keys, 0xff, bytes);
	memset(m->inodes, 0xff, bytes);
	memset(m->empties, 0xff, bytes);
	memset(m->first, 0xff, m->ndirs * sizeof *m->first);
	for (uint32_t i = 0; i < p->ndiffs; i++)
		if (moved_index_add(m, i) < 0)
			return -ENOMEM;
	for (uint32_t k = 0; k < p->ndirs; k++) {
		if (p->dirs[k].gone != CHANGES_NONE)
			m->side[p->dirs[k].gone].node = k;
		if (p->dirs[k].new != CHANGES_NONE)
			m->side[p->dirs[k].new].node = k;
	}
	return 0;
}

uint32_t moved_find_name(const struct moved_index *m, uint32_t dir, const char *name, size_t n,
			 bool gone)
{
	uint32_t i =
		dir == CHANGES_NONE ? CHANGES_NONE : m->names[name_slot(m, dir, name, n, gone)];

	for (; i != CHANGES_NONE; i = m->side[i].by_name) {
		const struct changes_diff *d = &m->p->diffs[i];

		if (d->dir == dir && moved_is_gone(d) == gone && moved_has_name(m, d, name, n))
			return i;
	}
	return CHANGES_NONE;
}

/* The deleted name that had the inode of this new one. */
uint32_t moved_find_inode(const struct moved_index *m, const struct changes_diff *new)
{
	uint32_t i = m->inodes[inode_slot(m, new)];

	for (int n = 0; i != CHANGES_NONE && n < PROBES; i = m->side[i].by_inode, n++) {
		const struct changes_diff *d = &m->p->diffs[i];

		if (d->ino == new->ino && d->btime_ns == new->btime_ns &&
		    (d->mode & S_IFMT) == (new->mode &S_IFMT))
			return i;
	}
	return CHANGES_NONE;
}

uint32_t moved_first_key(const struct moved_index *m, uint32_t mode, uint64_t size,
			 uint64_t mtime_ns, const char *name, size_t n)
{
	return m->keys[key_slot(m, mode, size, mtime_ns, name, n)];
}

uint32_t moved_first_dir(const struct moved_index *m, uint32_t mode, uint64_t mtime_ns)
{
	return m->empties[key_slot(m, mode, 0, mtime_ns, "", 0)];
}

void moved_index_done(struct moved_index *m)
{
	free(m->names);
	free(m->keys);
	free(m->inodes);
	free(m->empties);
	free(m->side);
	free(m->first);
}
