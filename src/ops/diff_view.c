/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/diff_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "ops/create/options.h"
#include "ops/operation.h"
#include "ops/reconcile.h"
#include "store/layer_open.h"
#include "store/pools.h"
#include "store/storage.h"
#include "trace/read.h"
#include "wire/frame.h"

enum { DEFAULT_USER = 1000 };

static void let_go(struct diff_view *l)
{
	struct err ignored = { 0 };

	if (!l->store)
		return;
	(void)catalog_del_sandbox(l->store->catalog, l->holder, &ignored);
	state_unlock(&l->store->state, l->holder, l->lock_fd);
}

/* A full disk must not prevent reading; missing layers must. */
static int hold(struct diff_view *l, struct cay *s, char (*sealed)[ID_SIZE], size_t n,
		struct err *e)
{
	struct err why = { 0 };

	if (n == 0)
		return 0;
	if (state_id_new(l->holder, e) < 0)
		return -1;
	if (state_lock(&s->state, l->holder, &l->lock_fd, &why) < 0)
		return 0;
	l->store = s;
	if (catalog_hold_layers(s->catalog, l->holder, sealed, n, &why) == 0 ||
	    why.kind != ERR_CONFLICT)
		return 0;
	*e = why;
	return err_code(e, "layers.busy", NULL);
}

void diff_view_done(struct diff_view *l)
{
	let_go(l);
	for (int i = 0; i < l->n; i++) {
		free(l->mounts[i].dest);
		free(l->mounts[i].host);
		stack_done(&l->mounts[i].base);
		stack_done(&l->mounts[i].now);
		if (l->mounts[i].frozen)
			fd_close(&l->mounts[i].index_fd);
	}
	free(l->mounts);
	free(l->first_dir);
	*l = (struct diff_view){ 0 };
}

/* Where the layers are stored. */
struct source {
	struct layer_roots roots;
	int disk_fd; /* contains upper/; FD_NONE for a snapshot, which has none */
	char (*sealed)[ID_SIZE];
	size_t nsealed;
	bool rootful;
};

/* Takes fd, a descriptor or -errno. */
static int add(struct stack *s, int fd, const char *path, struct stack_layer like, struct err *e)
{
	int r;

	if (fd == -LAYER_GONE) {
		(void)err_set(e, ERR_UNAVAILABLE, "the layer '%s' is not there", path);
		return err_code(e, "layer.gone", path);
	}
	if (fd == -ENOENT && path[0] == '/') {
		(void)err_sys(e, -fd, "'%s', which the sandbox shows", path);
		return err_code(e, "dir.gone", path);
	}
	if (fd < 0)
		return err_sys(e, -fd, "open the layer '%s'", path);
	like.fd = fd;
	r = stack_add(s, like);
	return r < 0 ? err_sys(e, -r, "open the layer '%s'", path) : 0;
}

static int add_dir(struct stack *s, int dirfd, const char *path, struct stack_layer like,
		   struct err *e)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return add(s, fd < 0 ? -errno : fd, path, like, e);
}

/* Files that the sandbox wrote carry the ids used inside. */
static int open_own(struct diff_mount *m, const struct source *src, struct err *e)
{
	const struct stack_layer plain = { .fd = FD_NONE };
	char name[64];

	if (src->disk_fd >= 0) {
		(void)snprintf(name, sizeof name, "upper/%d", m->index);
		if (faccessat(src->disk_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
		    add_dir(&m->now, src->disk_fd, name, plain, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < src->nsealed; i++) {
		int fd;

		if (layer_is_start(src->sealed[i]))
			continue;
		(void)snprintf(name, sizeof name, "%s/%d", src->sealed[i], m->index);
		fd = layer_open(&src->roots, name, O_RDONLY | O_DIRECTORY);
		/* The layer lacks a mount that was added later. */
		if (fd != -ENOENT && add(&m->now, fd, name, plain, e) < 0)
			return -1;
	}
	return 0;
}

/* Opens the frozen start of a mount. 1, 0 if it was not frozen, or -1. */
static int open_start(struct diff_mount *m, const struct source *src, struct err *e)
{
	const struct stack_layer plain = { .fd = FD_NONE };
	int fd = -ENOENT, again;
	char path[64];
	size_t i = 0;

	for (; i < src->nsealed && fd == -ENOENT; i++)
		fd = layer_open_start(&src->roots, src->sealed[i], m->index,
				      O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT)
		return 0;
	again = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (add(&m->base, fd, src->sealed[i - 1], plain, e) < 0) {
		fd_close(&again);
		return -1;
	}
	if (add(&m->now, again < 0 ? -errno : again, src->sealed[i - 1], plain, e) < 0)
		return -1;
	(void)snprintf(path, sizeof path, "%s/%d.index", src->sealed[i - 1], m->index);
	m->index_fd = layer_open(&src->roots, path, O_RDONLY);
	m->frozen = true;
	return 1;
}

/* Opens one mount field of a recipe. 1: opened; 0: it is read-only. */
static int open_mount(struct diff_mount *m, const struct source *src, struct str body,
		      struct err *e)
{
	struct str lowers = body;
	uint64_t kind = 0, owner = UINT64_MAX;
	struct field f;

	while (field_next(&body, &f) > 0) {
		if (f.tag == M_KIND)
			(void)field_u64(f, &kind);
		else if (f.tag == M_OWNER)
			(void)field_u64(f, &owner);
		else if (f.tag == M_DEST && str_is_text(f.value))
			m->dest = strndup(f.value.p, f.value.n);
	}
	if (kind != MOUNT_OVERLAY)
		return 0;
	if (!m->dest)
		return err_set(e, ERR_FAILED, "the catalog holds a mount without a place");
	m->base.userxattr = m->now.userxattr = !src->rootful;
	if (open_own(m, src, e) < 0 || open_start(m, src, e) < 0)
		return -1;
	while (field_next(&lowers, &f) > 0) {
		struct stack_layer like = { .fd = FD_NONE };
		char path[LIMIT_PATH];

		if (owner != UINT64_MAX && src->rootful) {
			like.owner = (uint32_t)owner;
			like.user = DEFAULT_USER;
		}
		if (f.tag != M_LOWER || !str_copy(path, sizeof path, f.value))
			continue;
		if (!m->frozen && (add_dir(&m->base, AT_FDCWD, path, like, e) < 0 ||
				   add_dir(&m->now, AT_FDCWD, path, like, e) < 0))
			return -1;
		if (owner != UINT64_MAX && !m->host)
			m->host = strdup(path);
	}
	return m->base.n ? 1 : err_set(e, ERR_FAILED, "'%s' has no layers", m->dest);
}

static int open_all(struct diff_view *l, const struct source *src, struct str recipe, struct err *e)
{
	struct field f;
	int index = 0;

	l->mounts = calloc(LIMIT_MOUNTS + 17, sizeof *l->mounts);
	if (!l->mounts)
		return err_sys(e, ENOMEM, "open the layers");
	for (; field_next(&recipe, &f) > 0; index += f.tag == TAG_MOUNT) {
		struct diff_mount *m = &l->mounts[l->n];
		int r;

		if (f.tag != TAG_MOUNT)
			continue;
		m->index = index;
		r = open_mount(m, src, f.value, e);
		/* Count it after a failure too: diff_view_done() then releases its parts. */
		l->n += r != 0;
		if (r == 0) {
			free(m->dest);
			m->dest = NULL;
		}
		if (r < 0 || l->n == LIMIT_MOUNTS + 16)
			return r < 0 ? -1 : err_set(e, ERR_LIMIT, "too many mounts");
	}
	return l->n ? 0 : err_set(e, ERR_FAILED, "there are no layers");
}

/* A text of the spec, also if it is not UTF-8. Allocated, or NULL. */
static char *text_of(const json_t *value)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_PATH);

	if (!value || trace_value_text(value, &b) < 0 || buf_add_c(&b, "") < 0)
		return NULL;
	return str_is_text(buf_str(&b)) ? buf_take(&b, NULL) : NULL;
}

static int fill(struct cay *s, struct source *src, const char *recipe_of, const char *top,
		const char *spec_text, struct diff_view *ret, struct err *e)
{
	auto_done(diff_view_done) struct diff_view l = { 0 };
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
	auto_done(options_free) json_t *spec = spec_text ? json_loads(spec_text, 0, NULL) : NULL;
	int r;

	if (catalog_recipe(s->catalog, recipe_of, &recipe, e) < 0) {
		if (e->kind == ERR_NOT_FOUND)
			(void)err_code(e, "sandbox.not_kept", recipe_of);
		return -1;
	}
	if (catalog_stack(s->catalog, top, &src->sealed, &src->nsealed, e) < 0)
		return -1;
	r = hold(&l, s, src->sealed, src->nsealed, e);
	if (r == 0)
		r = open_all(&l, src, buf_str(&recipe), e);
	free(src->sealed);
	if (r < 0)
		return -1;
	l.first_dir =
		text_of(json_object_get(json_array_get(json_object_get(spec, "dirs"), 0), "dest"));
	/*
	 * Inode timestamps lag by up to a clock tick, so a change in the first milliseconds looks
	 * older. That is harmless: the sandbox was not built yet, and sees that change.
	 */
	l.base_ns = options_seen_ns(spec_text);
	*ret = l;
	l = (struct diff_view){ 0 };
	return 0;
}

int diff_view_open(struct cay *s, const struct sandbox_row *row, struct diff_view *ret,
		   struct err *e)
{
	auto_done(operation_done) struct operation m = OPERATION_INIT;
	auto_close int dir = FD_NONE, storage = FD_NONE, disk = FD_NONE;
	struct source src = { .rootful = row->uid_slot >= 0 };
	char top[ID_SIZE];

	/* Block operations while the view opens. A dead sandbox may have died during one. */
	if ((state_is_alive(&s->state, row->id)
		     ? operation_open(&m, s, row->id, e)
		     : reconcile_one(s->catalog, &s->state, row->id, e)) < 0 ||
	    catalog_top(s->catalog, row->id, top, e) < 0)
		return -1;
	if (state_sandbox_open(&s->state, row->id, &dir, e) < 0 ||
	    storage_open(&s->state, &storage, e) < 0 ||
	    storage_find(storage, row->id, &disk, e) < 0)
		return -1;
	src.roots = (struct layer_roots){ s->state.fd, storage };
	src.disk_fd = disk >= 0 ? disk : dir;
	if (fill(s, &src, row->id, top, row->spec, ret, e) < 0)
		return err_ctx(e, "sandbox '%s'", row->id);
	return 0;
}

int diff_view_open_snapshot(struct cay *s, const struct snapshot_row *row, struct diff_view *ret,
			    struct err *e)
{
	struct source src = { .rootful = geteuid() == 0, .disk_fd = FD_NONE };
	auto_close int storage = FD_NONE;

	if (storage_open(&s->state, &storage, e) < 0)
		return -1;
	src.roots = (struct layer_roots){ s->state.fd, storage };
	if (fill(s, &src, row->sandbox, row->top, row->spec, ret, e) < 0)
		return err_ctx(e, "snapshot '%s'", row->id);
	return 0;
}

int diff_view_open_any(struct cay *s, const char *ref, struct diff_view *ret, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };
	struct err none = { 0 };

	if (strncmp(ref, "snap:", 5) != 0 && catalog_find(s->catalog, ref, &box, e) == 0)
		return diff_view_open(s, &box, ret, e);
	if (catalog_find_snapshot(s->catalog, ref, &snap, &none) == 0)
		return diff_view_open_snapshot(s, &snap, ret, e);
	if (strncmp(ref, "snap:", 5) == 0 || none.kind != ERR_NOT_FOUND) {
		*e = none;
	} else if (e->kind == ERR_NOT_FOUND) {
		err_set(e, ERR_NOT_FOUND, "no sandbox or snapshot '%s'", ref);
		return err_code(e, "source.not_found", ref);
	}
	return -1;
}

bool diff_path_below(const char *path, const char *top)
{
	size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

int diff_view_inner(const struct diff_view *l, const struct diff_mount *m, const char **ret)
{
	size_t len = strcmp(m->dest, "/") == 0 ? 0 : strlen(m->dest);
	int n = 0;

	for (int i = 0; i < l->n; i++) {
		const char *dest = l->mounts[i].dest;

		if (strcmp(dest, m->dest) != 0 && diff_path_below(dest, m->dest))
			ret[n++] = dest + len + 1;
	}
	return n;
}

const struct diff_mount *diff_view_at(const struct diff_view *l, const char *dest)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->mounts[i].dest, dest) == 0)
			return &l->mounts[i];
	return NULL;
}

const struct diff_mount *diff_view_find(const struct diff_view *l, const char *path,
					const char **ret_rest)
{
	const struct diff_mount *best = NULL;
	size_t longest = 0;

	for (int i = 0; i < l->n; i++) {
		const struct diff_mount *m = &l->mounts[i];
		size_t n = strcmp(m->dest, "/") == 0 ? 0 : strlen(m->dest);

		if (strncmp(path, m->dest, n) != 0 || (path[n] && path[n] != '/') ||
		    (best && n < longest))
			continue;
		best = m;
		longest = n;
	}
	if (best)
		*ret_rest = path + longest + (path[longest] == '/');
	return best;
}

int diff_view_path(const struct diff_view *l, const char *path, char **ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_PATH);
	int r = 0;

	if (path[0] != '/' && l->first_dir && strcmp(l->first_dir, "/") != 0)
		r = buf_add_c(&b, l->first_dir);
	while (*path && r == 0) {
		size_t n = strcspn(path, "/");

		if (n == 2 && strncmp(path, "..", 2) == 0)
			return err_set(e, ERR_INVALID, "no '..' in a path inside");
		if (n && !(n == 1 && path[0] == '.'))
			r = buf_printf(&b, "/%.*s", (int)n, path);
		path += n + (path[n] == '/');
	}
	if (r == 0 && b.len == 0)
		r = buf_add_c(&b, "/");
	if (r < 0)
		return err_sys(e, -r, "a path");
	*ret = buf_take(&b, NULL);
	return 0;
}
