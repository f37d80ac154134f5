/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/failpoint.h"
#include "ops/start_copy.h"
#include "store/layer_open.h"
#include "store/storage.h"
#include "sys/files/voltree.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { TRIES = 5 };

/* What to freeze, and on which layers. */
struct plan {
	struct cay *c;
	const char *top;
	struct start_dir *dirs;
	int n;
};

static void plan_done(struct plan *p)
{
	free(p->dirs);
}
DEFINE_AUTO(struct plan, plan_done)

/* Copies by root and by a user have different owners. */
static void key_of(const struct start_dir *d, char out[LIMIT_PATH + 32])
{
	(void)snprintf(out, LIMIT_PATH + 32, "%u:%s", geteuid() == 0 ? d->owner : 0, d->path);
}

/* Reads one mount of a recipe. True if it is a writable host directory. */
static bool read_dir(struct str body, struct start_dir *d)
{
	uint64_t kind = MOUNT_RO, owner = UINT64_MAX;
	struct field f;

	while (field_next(&body, &f) > 0) {
		if (f.tag == M_KIND)
			(void)field_u64(f, &kind);
		else if (f.tag == M_OWNER)
			(void)field_u64(f, &owner);
		else if (f.tag == M_LOWER && !str_copy(d->path, sizeof d->path, f.value))
			return false;
	}
	d->owner = (uint32_t)owner;
	return kind == MOUNT_OVERLAY && owner != UINT64_MAX && d->path[0];
}

static bool is_frozen(const struct layer_roots *roots, char (*layers)[ID_SIZE], size_t n, int mount)
{
	auto_close int fd = -ENOENT;

	for (size_t i = 0; i < n && fd == -ENOENT; i++)
		fd = layer_open_start(roots, layers[i], mount, O_PATH | O_DIRECTORY);
	return fd != -ENOENT; /* it exists but cannot be opened; a later step reports that */
}

static int find_dirs(struct plan *p, struct str recipe, char (*layers)[ID_SIZE], size_t nlayers,
		     struct err *e)
{
	auto_close int storage = FD_NONE;
	struct layer_roots roots = { p->c->state.fd, FD_NONE };
	struct field f;
	int mount = 0;

	if (storage_open(&p->c->state, &storage, e) < 0)
		return -1;
	roots.storage_fd = storage;
	for (; field_next(&recipe, &f) > 0; mount += f.tag == TAG_MOUNT) {
		struct start_dir d = { .mount = mount };
		struct start_dir *more;
		char key[LIMIT_PATH + 32];

		if (f.tag != TAG_MOUNT || !read_dir(f.value, &d) ||
		    is_frozen(&roots, layers, nlayers, mount))
			continue;
		more = reallocarray(p->dirs, (size_t)p->n + 1, sizeof *more);
		if (!more)
			return err_sys(e, ENOMEM, "freeze '%s'", d.path);
		p->dirs = more;
		key_of(&d, key);
		if (starts_find(&p->c->state, key, d.last) <= 0)
			d.last[0] = '\0';
		p->dirs[p->n++] = d;
	}
	return 0;
}

/* The number of mounts in a start. */
static int count_mounts(const struct state *s, const char *id)
{
	auto_done(dir_free) DIR *d = NULL;
	char path[64];
	int n = 0;

	(void)snprintf(path, sizeof path, "layers/%s", id);
	d = dir_open_at(s->fd, path);
	for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d))
		n += !dir_is_dots(x->d_name) && !strchr(x->d_name, '.');
	return n;
}

/* Find and hold the start with exactly these directories on the same layers. */
static int find_same(const struct plan *p, struct start *ret, struct err *e)
{
	char id[ID_SIZE] = "", name[64];
	int r;

	(void)str_copy(id, sizeof id,
		       (struct str){ p->dirs[0].last, strcspn(p->dirs[0].last, "/") });
	for (int i = 0; i < p->n; i++) {
		(void)snprintf(name, sizeof name, "%s/%d", id, p->dirs[i].mount);
		if (!id[0] || strcmp(p->dirs[i].last, name) != 0)
			return 0;
	}
	if (count_mounts(&p->c->state, id) != p->n)
		return 0;
	r = catalog_has_start(p->c->catalog, id, p->top, e);
	if (r > 0)
		r = start_hold(p->c->catalog, &p->c->state, id, true, &ret->hold, e);
	if (r > 0)
		(void)str_copy(ret->id, sizeof ret->id, str_of(id));
	return r;
}

static void warn(struct cay *c, const char *code, const struct freeze_names *n, const char *what)
{
	char text[200], more[48] = "";

	if (!n->n)
		return;
	if (n->n > 1)
		(void)snprintf(more, sizeof more, " and %llu more", (unsigned long long)n->n - 1);
	(void)snprintf(text, sizeof text, "'%.100s'%s %s", n->first, more, what);
	warnings_add(&c->warnings, code, str_of(text));
}

static int fail(const struct plan *p, const struct start_report *rep, struct err *e)
{
	const struct start_dir *d = &p->dirs[rep->at < p->n ? rep->at : p->n - 1];

	(void)err_sys(e, -rep->err, "freeze '%s%s%s'", d->path, rep->result.where[0] ? "/" : "",
		      rep->result.where);
	if (rep->err == -ENOENT && !rep->result.where[0])
		return err_code(e, "start.gone", d->path);
	return rep->err == -ENOSPC ? err_code(e, "state.full", p->c->state.dir) : -1;
}

/* Put the files in place before the row: a row without files would be worse than the reverse. */
static int put_in_place(const struct plan *p, const char *id, struct err *e)
{
	const struct state *s = &p->c->state;
	auto_close int layers = FD_NONE;
	char from[64], to[64];

	(void)snprintf(from, sizeof from, "layers/new-%s", id);
	(void)snprintf(to, sizeof to, "layers/%s", id);
	layers = openat(s->fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (renameat(s->fd, from, s->fd, to) < 0 || layers < 0 || fsync(layers) < 0)
		return err_sys(e, errno, "keep '%s/%s'", s->dir, to);
	failpoint("start.renamed");
	if (catalog_add_start(p->c->catalog, id, p->top, e) < 0)
		return -1;
	for (int i = 0; i < p->n; i++) {
		char key[LIMIT_PATH + 32];

		key_of(&p->dirs[i], key);
		starts_remember(s, key, id, p->dirs[i].mount);
	}
	return 0;
}

static void remove_new(const struct state *s, const char *id)
{
	char path[64];

	(void)snprintf(path, sizeof path, "layers/new-%s", id);
	(void)voltree_remove(s->fd, path);
}

static int make_new(const struct plan *p, const char *may_be, struct start *ret, struct err *e)
{
	struct cay *c = p->c;
	struct start_hold hold = { .lock_fd = FD_NONE };
	struct start_report rep = { 0 };
	char id[ID_SIZE];
	int r;

	if (start_id_new(id, e) < 0 || start_hold(c->catalog, &c->state, id, false, &hold, e) < 0)
		return -1;
	failpoint("start.held");
	r = start_copy(c, p->dirs, p->n, id, may_be, &rep, e);
	if (r == 0 && rep.err < 0)
		r = fail(p, &rep, e);
	if (r == 0 && !rep.same)
		r = put_in_place(p, id, e);
	if (r < 0)
		remove_new(&c->state, id);
	if (r < 0 || rep.same) {
		start_release(c->catalog, &c->state, &hold);
		return r < 0 ? -1 : 1;
	}
	/* Release the start that was held for comparison. */
	start_release(c->catalog, &c->state, &ret->hold);
	ret->hold = hold;
	(void)str_copy(ret->id, sizeof ret->id, str_of(id));
	warn(c, "start.left_out", &rep.result.left_out,
	     "cannot be copied, and is not in the frozen directory");
	warn(c, "start.unsteady", &rep.result.unsteady,
	     "was being changed on the host while it was copied");
	return 0;
}

static int make_plan(struct plan *p, struct str recipe, struct err *e)
{
	auto_free char(*layers)[ID_SIZE] = NULL;
	size_t n = 0;

	if (catalog_stack(p->c->catalog, p->top, &layers, &n, e) < 0)
		return -1;
	return find_dirs(p, recipe, layers, n, e);
}

int start_warn_live(struct cay *c, struct str recipe, const char *top, struct err *e)
{
	auto_done(plan_done) struct plan p = { .c = c, .top = top };
	char text[200];

	if (make_plan(&p, recipe, e) < 0)
		return -1;
	for (int i = 0; i < p.n; i++) {
		(void)snprintf(text, sizeof text,
			       "'%.120s' was never frozen: it is shown as it is now",
			       p.dirs[i].path);
		warnings_add(&c->warnings, "start.live", str_of(text));
	}
	return 0;
}

int start_freeze(struct cay *c, struct str recipe, const char *top, struct start *ret,
		 struct err *e)
{
	auto_done(plan_done) struct plan p = { .c = c, .top = top };
	int r;

	*ret = (struct start){ .hold.lock_fd = FD_NONE };
	if (make_plan(&p, recipe, e) < 0)
		return -1;
	if (p.n == 0)
		return 0;
	r = find_same(&p, ret, e);
	if (r >= 0)
		r = make_new(&p, ret->id, ret, e);
	if (r < 0)
		start_done(c, ret);
	return r < 0 ? -1 : 0;
}

void start_done(struct cay *c, struct start *s)
{
	if (s->hold.id[0] && c->catalog)
		start_release(c->catalog, &c->state, &s->hold);
}

int start_freeze_sandbox(struct cay *c, const char *sandbox, char top[ID_SIZE], struct err *e)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);

	if (catalog_recipe(c->catalog, sandbox, &recipe, e) < 0)
		return -1;
	for (int i = 0;; i++) {
		struct start s;
		int r;

		if (start_freeze(c, buf_str(&recipe), top, &s, e) < 0)
			return -1;
		if (!s.id[0])
			return 0;
		r = catalog_set_start(c->catalog, sandbox, s.id, top, e);
		failpoint("start.set");
		if (r == 0)
			(void)str_copy(top, ID_SIZE, str_of(s.id));
		start_done(c, &s);
		if (r == 0)
			return 0;
		/* Its layers were merged during the copy: the copy is still valid. */
		if (e->sys != ESTALE || i == TRIES || catalog_top(c->catalog, sandbox, top, e) < 0)
			return -1;
	}
}
