/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/limits.h"
#include "image/template.h"
#include "ops/destroy.h"
#include "ops/layers_free.h"
#include "ops/list.h"
#include "ops/reconcile.h"
#include "store/snapshots.h"
#include "store/storage.h"

enum { REMOVE_MS = 2000 };

/* A directory below sandboxes/ without a living owner, and its size. */
struct leftover {
	char id[ID_SIZE];
	uint64_t bytes;
};

struct leftovers {
	struct leftover *items;
	int n;
};

static void leftovers_done(struct leftovers *l)
{
	free(l->items);
}
DEFINE_AUTO(struct leftovers, leftovers_done)

static int leftovers_find(struct leftovers *l, const struct state *s)
{
	auto_done(dir_free) DIR *d = dir_open_at(s->fd, "sandboxes");
	auto_close int storage = FD_NONE;
	struct err ignored;
	struct dirent *de;

	(void)storage_open(s, &storage, &ignored);
	while (d && (de = readdir(d))) {
		struct leftover *items;

		if (!state_id_ok(de->d_name) || state_is_alive(s, de->d_name))
			continue;
		items = reallocarray(l->items, (size_t)l->n + 1, sizeof *items);
		if (!items)
			return -ENOMEM;
		l->items = items;
		(void)str_copy(items[l->n].id, sizeof items[l->n].id, str_of(de->d_name));
		items[l->n].bytes = layers_disk_usage(dirfd(d), de->d_name);
		if (storage >= 0)
			items[l->n].bytes += layers_disk_usage(storage, de->d_name);
		l->n++;
	}
	return 0;
}

/* The size of the leftovers that have been removed since. */
static uint64_t freed_bytes(const struct leftovers *l, const struct state *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < l->n; i++) {
		auto_close int fd = FD_NONE;
		struct err ignored;

		if (state_sandbox_open(s, l->items[i].id, &fd, &ignored) < 0)
			sum += l->items[i].bytes;
	}
	return sum;
}

static int remove_lost(struct cay *c, const struct gc_spec *spec, struct gc_result *r,
		       struct err *e)
{
	auto_done(sandbox_list_done) struct sandbox_list list = { 0 };
	struct err one = { 0 };

	if (sandbox_list_load(&list, c, e) < 0)
		return -1;
	for (int i = 0; i < list.n; i++) {
		if (strcmp(list.rows[i].state, "lost") != 0)
			continue;
		if (!spec->lost)
			r->lost_kept++;
		else if (op_remove(c, list.rows[i].id, REMOVE_MS, &one) == 0)
			r->lost_removed++;
		else if (spec->failed)
			spec->failed(spec->ctx, &one);
	}
	return 0;
}

/* Free layers that no sandbox and no snapshot uses, and unfinished layers. */
static int free_layers(struct cay *c, struct gc_result *r, struct err *e)
{
	auto_close int storage = FD_NONE;
	uint64_t bytes = 0;
	int done;

	done = layers_free(c->catalog, &c->state, &r->layers, &bytes, e);
	r->bytes += bytes;
	if (done < 0 || storage_open(&c->state, &storage, e) < 0)
		return -1;
	return storage_sweep_groups(&c->state, storage, e) < 0 ? -1 : 0;
}

/*
 * Without a recipe we cannot know what a sandbox shows. Such a sandbox ends with its command, or is
 * a ready one.
 */
static bool shows_unknown(struct cay *c)
{
	auto_done(dir_free) DIR *d = dir_open_at(c->state.fd, "sandboxes");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
		struct err ignored = { 0 };

		if (!dir_is_dots(de->d_name) &&
		    catalog_recipe(c->catalog, de->d_name, &recipe, &ignored) < 0)
			return true;
	}
	return !d;
}

struct bases {
	struct cay *c;
	struct gc_result *r;
};

/* An older base layer of the host; each takes forty megabytes. */
static bool is_base_used(void *ctx, const char *name)
{
	struct bases *b = ctx;
	struct err ignored = { 0 };
	char path[LIMIT_PATH];

	(void)snprintf(path, sizeof path, "templates/host/%s/", name);
	if (catalog_recipes_hold(b->c->catalog, path, &ignored) != 0)
		return true;
	b->r->bytes += layers_disk_usage(b->c->state.fd, path);
	return false;
}

static int free_bases(struct cay *c, struct gc_result *r, struct err *e)
{
	struct bases b = { c, r };
	int n = shows_unknown(c) ? 0 : template_host_prune(c->state.dir, is_base_used, &b);

	r->bases = n < 0 ? 0 : n;
	return n < 0 ? err_sys(e, -n, "remove old layers of the host") : 0;
}

/* rest: receives later failures once the first failure is recorded. */
static int sweep(struct cay *c, const struct gc_spec *spec, const struct leftovers *left,
		 struct gc_result *r, struct err *e)
{
	auto_close int lock = FD_NONE;
	struct err rest = { 0 };
	int done = reconcile_all(c->catalog, &c->state, 0, &r->removed, e), swept;

	/*
	 * Before lost sandboxes are removed, because that would free their layers without counting
	 * them.
	 */
	if (layers_lock(&c->state, true, &lock, done < 0 ? &rest : e) < 0)
		done = -1;
	if (remove_lost(c, spec, r, done < 0 ? &rest : e) < 0)
		done = -1;
	swept = template_host_sweep(c->state.dir);
	if (swept < 0)
		done = err_sys(done < 0 ? &rest : e, -swept, "look at the templates in '%s'",
			       c->state.dir);
	r->bytes = freed_bytes(left, &c->state);
	if (lock >= 0 && free_layers(c, r, done < 0 ? &rest : e) < 0)
		done = -1;
	if (free_bases(c, r, done < 0 ? &rest : e) < 0)
		done = -1;
	return done < 0 ? -1 : 0;
}

int op_gc(struct cay *c, const struct gc_spec *spec, struct gc_result *ret, struct err *e)
{
	auto_done(leftovers_done) struct leftovers left = { 0 };

	*ret = (struct gc_result){ 0 };
	if (cay_catalog(c, e) < 0)
		return -1;
	if (leftovers_find(&left, &c->state) < 0)
		return err_sys(e, ENOMEM, "looking for leftovers");
	c->after |= AFTER_POOL;
	return sweep(c, spec, &left, ret, e);
}
