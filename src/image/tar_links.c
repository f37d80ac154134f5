/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_links.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"

struct tar_link {
	dev_t dev;
	ino_t ino;
	size_t name; /* offset in names, plus 1; 0 marks a free slot */
};

void tar_links_init(struct tar_links *t)
{
	*t = (struct tar_links){ .names = BUF_INIT(LIMIT_TREE_NAMES) };
}

void tar_links_done(struct tar_links *t)
{
	free(t->slots);
	buf_done(&t->names);
	tar_links_init(t);
}

static struct tar_link *slot_of(struct tar_link *slots, size_t size, dev_t dev, ino_t ino)
{
	uint64_t h = ((uint64_t)ino ^ (uint64_t)dev << 32) * 0x9e3779b97f4a7c15ull;
	size_t i = (size_t)(h >> 32) & (size - 1);

	while (slots[i].name && (slots[i].dev != dev || slots[i].ino != ino))
		i = (i + 1) & (size - 1);
	return &slots[i];
}

const char *tar_links_find(const struct tar_links *t, dev_t dev, ino_t ino)
{
	const struct tar_link *l = t->size ? slot_of(t->slots, t->size, dev, ino) : NULL;

	return l && l->name ? t->names.data + l->name - 1 : NULL;
}

static int grow(struct tar_links *t)
{
	size_t size = t->size ? 2 * t->size : 256;
	struct tar_link *slots = calloc(size, sizeof *slots);

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->size; i++)
		if (t->slots[i].name)
			*slot_of(slots, size, t->slots[i].dev, t->slots[i].ino) = t->slots[i];
	free(t->slots);
	t->slots = slots;
	t->size = size;
	return 0;
}

void tar_links_note(struct tar_links *t, dev_t dev, ino_t ino, const char *name)
{
	size_t at = t->names.len;
	struct tar_link *l;

	if (t->used >= LIMIT_TREE_LINKS || (2 * (t->used + 1) > t->size && grow(t) < 0))
		return;
	l = slot_of(t->slots, t->size, dev, ino);
	if (l->name || buf_add(&t->names, name, strlen(name) + 1) < 0)
		return;
	*l = (struct tar_link){ dev, ino, at + 1 };
	t->used++;
}
