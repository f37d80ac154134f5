/* SPDX-License-Identifier: Apache-2.0 */
/* List a directory into the arenas of a changes_tree, sorted and without duplicates. */
#include "warden/changes/changes_list.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/limits.h"

enum {
	DENTS_SIZE = 32 * 1024,
	/* struct linux_dirent64 */
	DENT_LEN = 16,
	DENT_TYPE = 18,
	DENT_NAME = 19,
	RUN = 8, /* entries sorted by insertion, before merging */
};

static uint64_t key_of(const char *p, size_t n)
{
	uint64_t key = 0;

	for (size_t i = 0; i < sizeof key; i++)
		key = key << 8 | (i < n ? (uint8_t)p[i] : 0);
	return key;
}

static int cmp(const char *text, const struct changes_name *a, const struct changes_name *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return changes_name_cmp((struct str){ text + a->off, a->len },
				(struct str){ text + b->off, b->len });
}

static void sort_run(const char *text, struct changes_name *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct changes_name x = v[i];
		size_t j = i;

		for (; j > 0 && cmp(text, &v[j - 1], &x) > 0; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static void merge_runs(const char *text, const struct changes_name *from, size_t mid, size_t n,
		       struct changes_name *to)
{
	size_t a = 0, b = mid;

	for (size_t i = 0; i < n; i++) {
		bool second = a == mid || (b < n && cmp(text, &from[b], &from[a]) < 0);

		to[i] = second ? from[b++] : from[a++];
	}
}

/* A merge sort: the C library's qsort is up to five times slower in a static binary. */
static int sort(const char *text, struct changes_name *v, size_t n)
{
	struct changes_name *from = v, *to;
	auto_free struct changes_name *tmp = NULL;

	for (size_t i = 0; i < n; i += RUN)
		sort_run(text, v + i, n - i < RUN ? n - i : RUN);
	if (n <= RUN)
		return 0;
	tmp = malloc(n * sizeof *tmp);
	if (!tmp)
		return -ENOMEM;
	to = tmp;
	for (size_t run = RUN; run < n; run *= 2) {
		struct changes_name *swap = from;

		for (size_t i = 0; i < n; i += 2 * run) {
			size_t len = n - i < 2 * run ? n - i : 2 * run;

			merge_runs(text, from + i, len < run ? len : run, len, to + i);
		}
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, from, n * sizeof *v);
	return 0;
}

static int add(struct changes_tree *t, const char *name, uint8_t type)
{
	size_t n = strlen(name);
	uint32_t off = (uint32_t)t->text.len;
	int r;

	if (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.')))
		return 0;
	if (t->nnames == LIMIT_WALK_NAMES || n > UINT16_MAX)
		return -E2BIG;
	if (t->nnames == t->cap_names) {
		uint32_t cap = t->cap_names ? 2 * t->cap_names : 64;
		void *p = realloc(t->names, cap * sizeof *t->names);

		if (!p)
			return -ENOMEM;
		t->names = p;
		t->cap_names = cap;
	}
	r = buf_add(&t->text, name, n + 1);
	if (r < 0)
		return r;
	t->names[t->nnames++] = (struct changes_name){
		.key = key_of(name, n), .off = off, .len = (uint16_t)n, .type = type
	};
	return 0;
}

static int read_names(struct changes_tree *t, int fd)
{
	/* Static: heap memory would be mapped, touched and unmapped for each walk. */
	static char dents[DENTS_SIZE];

	for (;;) {
		long n = syscall(SYS_getdents64, fd, dents, sizeof dents);

		if (n == 0 || (n < 0 && errno == ENOENT))
			return 0;
		if (n < 0)
			return -errno;
		for (long at = 0; at < n;) {
			const char *d = dents + at;
			uint16_t len;
			int r;

			memcpy(&len, d + DENT_LEN, sizeof len);
			r = add(t, d + DENT_NAME, (uint8_t)d[DENT_TYPE]);
			if (r < 0)
				return r;
			at += len;
		}
	}
}

/* A name that moves while the directory is read can appear twice. */
static void drop_duplicates(struct changes_tree *t, uint32_t first)
{
	uint32_t to = first;

	for (uint32_t i = first; i < t->nnames; i++)
		if (to == first || cmp(t->text.data, &t->names[to - 1], &t->names[i]) != 0)
			t->names[to++] = t->names[i];
	t->nnames = to;
}

int changes_list(struct changes_tree *t, int fd)
{
	uint32_t first = t->nnames;
	size_t text = t->text.len;
	int r;

	r = read_names(t, fd);
	if (r == 0 && t->nnames > first)
		r = sort(t->text.data, t->names + first, t->nnames - first);
	if (r < 0) {
		t->nnames = first;
		t->text.len = text;
		return r;
	}
	drop_duplicates(t, first);
	return 0;
}
