/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/apply_origin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/limits.h"

enum { HANDLE = sizeof(struct file_handle) + MAX_HANDLE_SZ, HOPS = 512 };

struct origin origin_handle(int dirfd, const char *name)
{
	union {
		struct file_handle h;
		char room[HANDLE];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };
	struct origin out = { 0 };
	int mount;

	if (name_to_handle_at(dirfd, name, &u.h, &mount, name[0] ? 0 : AT_EMPTY_PATH) < 0)
		return out;
	out.type = u.h.handle_type;
	out.n = u.h.handle_bytes;
	memcpy(out.bytes, u.h.f_handle, out.n);
	return out;
}

/* The attribute is struct ovl_fb of fs/overlayfs/overlayfs.h, followed by the handle. */
static struct origin read_origin(const struct stack *s, int dirfd, const char *name)
{
	enum { HEAD = 21, LEN_AT = 2, TYPE_AT = 4 };
	uint8_t was[HEAD + MAX_HANDLE_SZ];
	struct origin out = { 0 };
	int len = stack_origin(s, dirfd, name, was, sizeof was);

	if (len <= HEAD || was[LEN_AT] != len)
		return out;
	out.type = was[TYPE_AT];
	out.n = (unsigned)(len - HEAD);
	memcpy(out.bytes, was + HEAD, out.n);
	return out;
}

struct origin origin_of(const struct stack *s, int layer, const char *path)
{
	const char *slash = strrchr(path, '/');
	auto_free char *parent = slash ? strndup(path, (size_t)(slash - path)) : strdup("");
	auto_close int dir =
		parent ? stack_open_at(s->layers[layer].fd, parent, O_RDONLY | O_DIRECTORY)
		       : FD_NONE;

	return dir < 0 ? (struct origin){ 0 } : read_origin(s, dir, slash ? slash + 1 : path);
}

int origin_compare(const void *a, const void *b)
{
	const struct origin *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? -1 : 1) : memcmp(x->bytes, y->bytes, x->n);
}

static int add_row(struct origin_map *m, int dir, const char *name, const struct stack *s)
{
	if (m->n == LIMIT_DIFF_ENTRIES)
		return -E2BIG;
	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 256;
		void *grown = reallocarray(m->v, cap, sizeof *m->v);

		if (!grown)
			return -ENOMEM;
		m->v = grown;
		m->cap = cap;
	}
	m->v[m->n] = (struct origin_row){ origin_handle(dir, name), read_origin(s, dir, name) };
	m->n += m->v[m->n].is.n != 0;
	return 0;
}

/* Unreadable directories add nothing: their files then count as the host's and are refused. */
static int add_tree(struct origin_map *m, const struct stack *s, int parent, const char *name,
		    int depth)
{
	auto_done(dir_free) DIR *d = dir_open_at(parent, name);
	struct stat st;
	int r = 0;

	if (!d || depth == LIMIT_TREE_DEPTH)
		return 0;
	for (const struct dirent *x = readdir(d); x && r == 0; x = readdir(d)) {
		if (dir_is_dots(x->d_name) ||
		    fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
			continue;
		r = add_row(m, dirfd(d), x->d_name, s);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = add_tree(m, s, dirfd(d), x->d_name, depth + 1);
	}
	return r;
}

int origin_map_load(struct origin_map *m, const struct stack *s, int layers)
{
	int r = 0;

	m->loaded = true;
	for (int i = 0; i < layers && r == 0; i++)
		r = add_tree(m, s, s->layers[i].fd, ".", 0);
	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, origin_compare);
	return r;
}

void origin_map_done(struct origin_map *m)
{
	free(m->v);
	*m = (struct origin_map){ 0 };
}

struct origin origin_resolve(const struct origin_map *m, struct origin was)
{
	for (int i = 0; i < HOPS && was.n && m->n; i++) {
		const struct origin_row *row =
			bsearch(&was, m->v, m->n, sizeof *m->v, origin_compare);

		if (!row)
			break;
		was = row->was;
	}
	return was;
}
