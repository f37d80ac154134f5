/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/limits.h"
#include "sys/files/attrs.h"
#include "sys/files/resolve.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

int stack_add(struct stack *s, struct stack_layer layer)
{
	auto_close int fd = TAKE_FD(layer.fd);
	struct stack_layer *grown;
	struct stat st;

	if (s->n == STACK_LAYERS)
		return -E2BIG;
	if (fstat(fd, &st) < 0)
		return -errno;
	grown = reallocarray(s->layers, (size_t)s->n + 1, sizeof *grown);
	if (!grown)
		return -ENOMEM;
	s->layers = grown;
	layer.dev = st.st_dev;
	layer.ino = st.st_ino;
	layer.fd = TAKE_FD(fd);
	s->layers[s->n++] = layer;
	return 0;
}

void stack_done(struct stack *s)
{
	for (int i = 0; i < s->n; i++)
		fd_close(&s->layers[i].fd);
	free(s->layers);
	s->layers = NULL;
	s->n = 0;
}

bool stack_same_layer(const struct stack_layer *a, const struct stack_layer *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* The kernel accepts paths below 4096 bytes: open longer ones in several steps. */
int stack_open_at(int fd, const char *path, int flags)
{
	enum { MOST = LIMIT_PATH - 2 };
	auto_close int dir = FD_NONE;
	char part[LIMIT_PATH];

	while (strlen(path) > MOST) {
		size_t n = MOST;
		int next;

		while (n && path[n] != '/')
			n--;
		if (!n)
			return -ENAMETOOLONG;
		(void)str_copy(part, sizeof part, (struct str){ path, n });
		next = resolve_beneath(dir < 0 ? fd : dir, part, O_PATH | O_DIRECTORY, 0);
		if (next < 0)
			return next;
		fd_close(&dir);
		dir = next;
		path += n + 1;
	}
	return resolve_beneath(dir < 0 ? fd : dir, path[0] ? path : ".", flags, 0);
}

int stack_open_file(const struct stack *s, int layer, const char *path)
{
	/* The file may have become a pipe, which must not block us. */
	auto_close int fd = stack_open_at(s->layers[layer].fd, path,
					  O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

/* "/proc/self/fd/N/NAME", for calls without a directory argument. "": the directory itself. */
static void proc_path(char out[300], int dirfd, const char *name)
{
	(void)snprintf(out, 300, "/proc/self/fd/%d/%s", dirfd, name[0] ? name : ".");
}

static ssize_t overlay_xattr(const struct stack *s, int dirfd, const char *name, const char *key,
			     void *out, size_t size)
{
	char path[300], full[64];

	proc_path(path, dirfd, name);
	(void)snprintf(full, sizeof full, "%s%s", attrs_overlay_prefix(!s->userxattr), key);
	return lgetxattr(path, full, out, size);
}

static char opaque(const struct stack *s, int dirfd, const char *name)
{
	char value[4] = "";

	return overlay_xattr(s, dirfd, name, "opaque", value, sizeof value) == 1 ? value[0] : 0;
}

int stack_origin(const struct stack *s, int dirfd, const char *name, void *out, size_t size)
{
	ssize_t n = overlay_xattr(s, dirfd, name, "origin", out, size);

	return n < 0 ? -errno : (int)n;
}

static uint32_t inside(const struct stack_layer *l, uint32_t id)
{
	return id == l->owner ? l->user : id == l->user ? l->owner : id;
}

static void fill(const struct stack *s, int layer, const struct stat *st, struct stack_node *n)
{
	const struct stack_layer *l = &s->layers[layer];

	*n = (struct stack_node){
		.mode = st->st_mode,
		.size = (uint64_t)st->st_size,
		.uid = inside(l, st->st_uid),
		.gid = inside(l, st->st_gid),
		.rdev_major = major(st->st_rdev),
		.rdev_minor = minor(st->st_rdev),
		.dev = st->st_dev,
		.ino = st->st_ino,
		.ctime_ns = (uint64_t)st->st_ctim.tv_sec * NS_PER_S + (uint64_t)st->st_ctim.tv_nsec,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec,
		.nlink = st->st_nlink,
		.layer = layer,
	};
}

static void mask_add(struct stack_mask *m, int layer)
{
	m->bits[layer / 64] |= 1ull << (layer % 64);
}

static bool mask_has(const struct stack_mask *m, int layer)
{
	return m->bits[layer / 64] >> (layer % 64) & 1;
}

int stack_root(const struct stack *s, struct stack_node *ret)
{
	struct stat st;

	if (fstat(s->layers[0].fd, &st) < 0)
		return -errno;
	fill(s, 0, &st, ret);
	for (int i = 0; i < s->n; i++) {
		mask_add(&ret->mask, i);
		if (opaque(s, s->layers[i].fd, "") == 'y')
			break;
	}
	return 0;
}

void stack_dir_done(struct stack_dir *d)
{
	for (int i = 0; i < d->n; i++)
		fd_close(&d->parts[i].fd);
	free(d->parts);
	*d = (struct stack_dir){ 0 };
}

int stack_dir_open(const struct stack *s, const char *path, const struct stack_mask *mask,
		   struct stack_dir *ret)
{
	auto_done(stack_dir_done) struct stack_dir d = { 0 };

	d.parts = calloc((size_t)s->n + 1, sizeof *d.parts);
	if (!d.parts)
		return -ENOMEM;
	for (int i = 0; i < s->n; i++) {
		int fd;

		if (!mask_has(mask, i))
			continue;
		fd = stack_open_at(s->layers[i].fd, path, DIR_FLAGS);
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
			return fd;
		d.denied |= fd == -EACCES || fd == -EPERM;
		if (fd < 0)
			continue;
		d.parts[d.n++] = (struct stack_part){ fd, i, opaque(s, fd, "") == 'x' };
	}
	*ret = d;
	d = (struct stack_dir){ 0 };
	return 0;
}

static bool is_whiteout(const struct stack *s, const struct stack_part *p, const char *name,
			const struct stat *st)
{
	if (S_ISCHR(st->st_mode) && st->st_rdev == 0)
		return true;
	return p->xwhiteouts && S_ISREG(st->st_mode) && st->st_size == 0 &&
	       overlay_xattr(s, p->fd, name, "whiteout", NULL, 0) >= 0;
}

int stack_look(const struct stack *s, const struct stack_dir *d, const char *name,
	       struct stack_node *ret)
{
	bool found = false;

	for (int i = 0; i < d->n; i++) {
		const struct stack_part *p = &d->parts[i];
		struct stat st;

		if (fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
			if (errno == ENOENT)
				continue;
			return -errno;
		}
		if (is_whiteout(s, p, name, &st) || (found && !S_ISDIR(st.st_mode)))
			break;
		if (!found)
			fill(s, p->layer, &st, ret);
		found = true;
		if (!S_ISDIR(st.st_mode))
			break;
		mask_add(&ret->mask, p->layer);
		if (opaque(s, p->fd, name) == 'y')
			break;
	}
	return found;
}

int stack_find(const struct stack *s, const char *path, struct stack_node *ret)
{
	auto_free char *so_far = strdup(path);
	struct stack_node node = { 0 };
	int r = so_far ? stack_root(s, &node) : -ENOMEM;

	for (size_t at = 0; r >= 0 && path[at];) {
		auto_done(stack_dir_done) struct stack_dir d = { 0 };
		size_t n = strcspn(path + at, "/"), cut = at ? at - 1 : 0;
		char name[256];

		if (!str_copy(name, sizeof name, (struct str){ path + at, n }))
			return -ENAMETOOLONG;
		if (!S_ISDIR(node.mode))
			return 0;
		so_far[cut] = '\0';
		r = stack_dir_open(s, so_far, &node.mask, &d);
		so_far[cut] = path[cut];
		if (r == 0)
			r = stack_look(s, &d, name, &node);
		if (r <= 0)
			return r;
		at += n + (path[at + n] == '/');
	}
	if (r < 0)
		return r;
	*ret = node;
	return 1;
}

void stack_names_done(struct stack_names *n)
{
	buf_done(&n->text);
	free(n->at);
	*n = (struct stack_names){ 0 };
}

static int add_name(struct stack_names *n, const char *name)
{
	size_t len = strlen(name);

	if (n->n >= LIMIT_WALK_NAMES)
		return -E2BIG;
	if (n->n == n->cap) {
		size_t cap = n->cap ? 2 * n->cap : 64;
		void *p = reallocarray(n->at, cap, sizeof *n->at);

		if (!p)
			return -ENOMEM;
		n->at = p;
		n->cap = cap;
	}
	n->at[n->n++] = (uint32_t)n->text.len;
	return buf_add(&n->text, name, len + 1);
}

int stack_names_add(struct stack_names *n, int dirfd)
{
	int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *ent;
	int r = 0;

	if (!dir) {
		r = -errno;
		fd_close(&copy);
		return r;
	}
	n->text.max = LIMIT_WALK_TEXT;
	while (r == 0 && (errno = 0, ent = readdir(dir)))
		if (strcmp(ent->d_name, ".") != 0 && strcmp(ent->d_name, "..") != 0)
			r = add_name(n, ent->d_name);
	if (r == 0 && !ent && errno)
		r = -errno;
	(void)closedir(dir);
	return r;
}

static int by_name(const void *a, const void *b, void *text)
{
	return strcmp((char *)text + *(const uint32_t *)a, (char *)text + *(const uint32_t *)b);
}

void stack_names_sort(struct stack_names *n)
{
	size_t kept = 0;

	if (!n->n)
		return;
	qsort_r(n->at, n->n, sizeof *n->at, by_name, n->text.data);
	for (size_t i = 0; i < n->n; i++)
		if (!kept || strcmp(stack_name(n, i), stack_name(n, kept - 1)) != 0)
			n->at[kept++] = n->at[i];
	n->n = kept;
}

/*
 * True for attributes of overlayfs, and those that the host's security module sets on every file.
 */
static bool is_own(const struct stack *s, const char *name)
{
	return !attrs_is_overlay(name, !s->userxattr) && strcmp(name, "security.selinux") != 0 &&
	       strcmp(name, "security.ima") != 0 && strcmp(name, "security.evm") != 0;
}

static int add_xattr(const char *path, const char *name, struct buf *out)
{
	ssize_t n = lgetxattr(path, name, NULL, 0);
	int r;

	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	r = buf_printf(out, "%s=%zd:", name, n);
	if (r == 0)
		r = buf_reserve(out, (size_t)n + 1);
	if (r < 0)
		return r;
	n = lgetxattr(path, name, out->data + out->len, (size_t)n);
	if (n < 0)
		return -errno;
	buf_grew(out, (size_t)n);
	return 0;
}

int stack_xattrs(const struct stack *s, int dirfd, const char *name, struct buf *out)
{
	auto_done(stack_names_done) struct stack_names names = { .text = { .max = LIMIT_XATTRS } };
	auto_free char *list = NULL;
	char path[300];
	ssize_t n;
	int r = 0;

	proc_path(path, dirfd, name);
	n = llistxattr(path, NULL, 0);
	if (n > 0) {
		list = malloc((size_t)n);
		n = list ? llistxattr(path, list, (size_t)n) : (errno = ENOMEM, -1);
	}
	if (n < 0)
		return errno == ENOTSUP || errno == ENOENT ? 0 : -errno;
	for (ssize_t at = 0; at < n && r == 0; at += (ssize_t)strlen(list + at) + 1)
		if (is_own(s, list + at))
			r = add_name(&names, list + at);
	stack_names_sort(&names);
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = add_xattr(path, stack_name(&names, i), out);
	return r;
}
