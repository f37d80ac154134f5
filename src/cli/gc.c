/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/dir.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/sandboxes.h"
#include "image/template.h"
#include "store/pool.h"
#include "store/snapshots.h"

enum { SETTLE_MS = 2000 };

static bool want_lost;
static struct opt opts[] = {
	{ "lost", 0, OPT_FLAG, NULL, "Also remove lost sandboxes and what is in them", &want_lost },
	{ 0 },
};

/* A directory below sandboxes/ that nobody alive owns, and what it takes. */
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
	auto_close int pool = FD_NONE;
	struct err ignored;
	struct dirent *de;

	(void)pool_open(s, &pool, &ignored);
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
		if (pool >= 0)
			items[l->n].bytes += layers_disk_usage(pool, de->d_name);
		l->n++;
	}
	return 0;
}

/* Of what was left before, that which is not there any more. */
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

struct result {
	int removed, lost_removed, lost_kept, layers, bases, code;
	bool failed; /* something could not be looked at */
	uint64_t bytes;
};

static int settle_lost(const struct cmd_ctx *ctx, struct cli_store *s, struct result *r,
		       struct err *e)
{
	auto_done(sandbox_list_done) struct sandbox_list list = { 0 };
	struct err one = { 0 };

	if (sandbox_list_load(&list, s, e) < 0)
		return -1;
	for (int i = 0; i < list.n; i++) {
		if (strcmp(list.rows[i].state, "lost") != 0)
			continue;
		if (!want_lost) {
			r->lost_kept++;
		} else if (sandbox_settle(s, list.rows[i].id, SETTLE_MS, &one) == 0) {
			r->lost_removed++;
		} else {
			int code = cmd_report(ctx, &one);

			r->code = r->code ? r->code : code;
		}
	}
	return 0;
}

static void print(const struct cmd_ctx *ctx, const struct result *r)
{
	struct out_json j = { .f = stdout };
	char size[OUT_NUMBER];

	if (ctx->json) {
		out_json_open(&j, NULL, '{');
		out_json_num(&j, "leftovers_removed", r->removed);
		out_json_num(&j, "lost_removed", r->lost_removed);
		out_json_num(&j, "lost_kept", r->lost_kept);
		out_json_num(&j, "layers_removed", r->layers);
		out_json_num(&j, "bases_removed", r->bases);
		out_json_num(&j, "freed_bytes", (int64_t)r->bytes);
		out_json_close(&j, '}');
		out_json_line(&j);
		return;
	}
	if (ctx->quiet)
		return;
	if (r->removed + r->lost_removed + r->layers + r->bases > 0)
		printf("Removed %d leftover%s, %d lost sandbox%s and %d layer%s: %s freed.\n",
		       r->removed, r->removed == 1 ? "" : "s", r->lost_removed,
		       r->lost_removed == 1 ? "" : "es", r->layers + r->bases,
		       r->layers + r->bases == 1 ? "" : "s", out_size(r->bytes, size));
	else if (!r->failed)
		puts("Nothing to remove.");
	if (r->lost_kept)
		fprintf(stderr, "%d lost, kept; remove with: cay gc --lost\n", r->lost_kept);
}

/* Layers that no sandbox and no snapshot has, and what was being made of some. */
static int free_layers(struct cli_store *s, struct result *r, struct err *e)
{
	auto_close int pool = FD_NONE;
	uint64_t bytes = 0;
	int done;

	done = catalog_free_layers(s->catalog, &s->state, &r->layers, &bytes, e);
	r->bytes += bytes;
	if (done < 0 || pool_open(&s->state, &pool, e) < 0)
		return -1;
	return pool_sweep_groups(&s->state, pool, e) < 0 ? -1 : 0;
}

/* Of one without a recipe nobody can tell what it shows: it ends with its command, or is ready. */
static bool shows_unknown(struct cli_store *s)
{
	auto_done(dir_free) DIR *d = dir_open_at(s->state.fd, "sandboxes");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
		struct err ignored = { 0 };

		if (!dir_is_dots(de->d_name) &&
		    catalog_recipe(s->catalog, de->d_name, &recipe, &ignored) < 0)
			return true;
	}
	return !d;
}

struct bases {
	struct cli_store *s;
	struct result *r;
};

/* A base layer of the host's as it was before; forty megabytes each. */
static bool is_base_used(void *ctx, const char *name)
{
	struct bases *b = ctx;
	struct err ignored = { 0 };
	char path[LIMIT_PATH];

	(void)snprintf(path, sizeof path, "templates/host/%s/", name);
	if (catalog_recipes_hold(b->s->catalog, path, &ignored) != 0)
		return true;
	b->r->bytes += layers_disk_usage(b->s->state.fd, path);
	return false;
}

static int free_bases(struct cli_store *s, struct result *r, struct err *e)
{
	struct bases b = { s, r };
	int n = shows_unknown(s) ? 0 : template_host_prune(s->state.dir, is_base_used, &b);

	r->bases = n < 0 ? 0 : n;
	return n < 0 ? err_sys(e, -n, "remove old layers of the host") : 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(leftovers_done) struct leftovers left = { 0 };
	auto_close int lock = FD_NONE;
	struct err rest = { 0 }; /* the first failure is told, and stops nothing */
	struct result r = { 0 };
	int done, swept;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_store_open(&s, e) < 0)
		return -1;
	if (leftovers_find(&left, &s.state) < 0)
		return err_sys(e, ENOMEM, "looking for leftovers");
	done = catalog_reconcile(s.catalog, &s.state, 0, &r.removed, e);
	/* Before the lost go, which would have their layers removed with nobody counting. */
	if (layers_lock(&s.state, true, &lock, done < 0 ? &rest : e) < 0)
		done = -1;
	if (settle_lost(ctx, &s, &r, done < 0 ? &rest : e) < 0)
		done = -1;
	swept = template_host_sweep(s.state.dir);
	if (swept < 0)
		done = err_sys(done < 0 ? &rest : e, -swept, "look at the templates in '%s'",
			       s.state.dir);
	r.bytes = freed_bytes(&left, &s.state);
	if (lock >= 0 && free_layers(&s, &r, done < 0 ? &rest : e) < 0)
		done = -1;
	if (free_bases(&s, &r, done < 0 ? &rest : e) < 0)
		done = -1;
	r.failed = done < 0;
	print(ctx, &r);
	keeper_tend(&s.state);
	return done < 0 ? -1 : r.code;
}

const struct cmd cmd_gc = {
	.name = "gc",
	.synopsis = "[--lost]",
	.summary = "Remove what dead sandboxes have left behind",
	.details =
		"Directories, control groups and catalog rows of sandboxes that ended without "
		"cleaning up, layers that neither a sandbox nor a snapshot needs, those that were "
		"made of the host as it was before, and templates that were not built to their end, "
		"some minutes later. A lost "
		"sandbox, one that was meant to stay but whose warden is gone, is kept with a "
		"snapshot of its files, unless --lost is given. What is alive is never touched.",
	.examples = "cay gc\ncay gc --lost",
	.run = run,
	.opts = opts,
	.data = true,
};
