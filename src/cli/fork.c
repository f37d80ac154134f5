/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/fork.h"
#include "cli/keeper.h"
#include "cli/moment.h"
#include "cli/newborn.h"
#include "cli/output.h"
#include "store/warm.h"

/* How many are claimed at once, and so the most that one failure takes with it. */
enum { TOGETHER = 64, MOST = 100000 };

static struct {
	uint64_t count;
	const char *name;
} o;

static struct opt opts[] = {
	{ "count", 'c', OPT_COUNT, "N", "How many; default: 1", &o.count },
	{ "name", 'n', OPT_TEXT, "NAME", "A name; of several NAME-1, NAME-2 and so on", &o.name },
	{ 0 },
};

static int from_sandbox(struct cli_store *s, const char *id, struct origin *ret, struct err *e)
{
	auto_done(moment_done) struct moment m = MOMENT_INIT;
	struct snapshot_row row = { .kind = SNAPSHOT_FORK };

	if (moment_open(&m, s, id, e) < 0 || state_id_new(row.id, e) < 0 ||
	    state_lock(&s->state, row.id, &ret->lock_fd, e) < 0)
		return -1;
	if (moment_snapshot(&m, &row, NULL, e) < 0) {
		state_unlock(&s->state, row.id, ret->lock_fd);
		return -1;
	}
	(void)str_copy(ret->of.recipe_of, sizeof ret->of.recipe_of, str_of(m.row.id));
	(void)str_copy(ret->of.top, sizeof ret->of.top, str_of(row.top));
	(void)str_copy(ret->holder, sizeof ret->holder, str_of(row.id));
	return 0;
}

static void from_snapshot(const struct snapshot_row *snap, struct origin *ret)
{
	(void)str_copy(ret->of.recipe_of, sizeof ret->of.recipe_of, str_of(snap->sandbox));
	(void)str_copy(ret->of.top, sizeof ret->of.top, str_of(snap->top));
}

int origin_open(struct cli_store *s, const char *ref, struct origin *ret, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	struct err none = { 0 };
	int r = state_id_ok(ref) ? catalog_get_snapshot(s->catalog, ref, &snap, e) : 0;

	/* A whole id, as programs give it, is one question only. */
	if (r > 0)
		from_snapshot(&snap, ret);
	if (r != 0)
		return r < 0 ? -1 : 0;
	if (strncmp(ref, "snap:", 5) != 0 && catalog_find(s->catalog, ref, &box, &none) == 0)
		return from_sandbox(s, box.id, ret, e);
	if (catalog_find_snapshot(s->catalog, ref, &snap, e) < 0) {
		if (e->kind == ERR_NOT_FOUND && none.kind != ERR_NONE &&
		    none.kind != ERR_NOT_FOUND) {
			*e = none; /* such as a beginning that several sandboxes have */
			return -1;
		}
		if (e->kind == ERR_NOT_FOUND && strncmp(ref, "snap:", 5) != 0) {
			err_set(e, ERR_NOT_FOUND, "no sandbox or snapshot '%s'", ref);
			return err_hint(e, "list them with: cay ls, cay snapshots");
		}
		return -1;
	}
	from_snapshot(&snap, ret);
	return 0;
}

static void print_made(const struct cmd_ctx *ctx, const struct newborn *n)
{
	struct out_json j = { .f = stdout };

	if (!ctx->json) {
		puts(n->row.id);
		return;
	}
	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", n->row.id);
	out_json_c(&j, "name", n->row.name);
	out_json_c(&j, "layer", n->row.top);
	out_json_time(&j, "created", n->row.created_ns);
	out_json_ms(&j, "start_ms", n->start_us);
	out_json_close(&j, '}');
	out_json_line(&j);
}

void origin_close(struct cli_store *s, struct origin *from)
{
	struct err ignored = { 0 };

	if (!from->holder[0])
		return;
	(void)catalog_del_snapshot(s->catalog, from->holder, &ignored);
	state_unlock(&s->state, from->holder, from->lock_fd);
	from->holder[0] = '\0';
}

static void name_it(char out[64], const char *name, bool numbered, unsigned number)
{
	if (name && numbered)
		(void)snprintf(out, 64, "%.48s-%u", name, number);
	else
		(void)snprintf(out, 64, "%s", name ? name : "");
}

/* Those that were claimed and are not finished have an owner who does not want them any more. */
static void drop_rest(struct newborn *ns, size_t from, size_t n)
{
	struct err ignored = { 0 };

	for (size_t i = from; i < n; i++)
		(void)newborn_destroy(&ns[i], &ignored);
}

static int finish(struct newborn *ns, unsigned n, const struct forks *f, unsigned first,
		  struct err *e)
{
	for (unsigned i = 0; i < n; i++) {
		int r = newborn_finish(&ns[i], e);

		if (r == 0)
			r = f->fn(f->ctx, first + i, &ns[i]) ? 1 : 0;
		if (r != 0) {
			drop_rest(ns, i + 1, n);
			return r;
		}
	}
	return 0;
}

static int fork_some(struct cli_store *s, const struct origin *from, const struct forks *f,
		     struct newborn *ns, unsigned first, struct err *e)
{
	unsigned n = f->count - first < TOGETHER ? f->count - first : TOGETHER;
	char names[TOGETHER][64];
	int r;

	for (unsigned i = 0; i < n; i++) {
		ns[i] = (struct newborn){ NEWBORN_INIT };
		name_it(names[i], f->name, f->numbered, first + i + 1);
	}
	if (first == 0 && f->first) {
		ns[0] = *f->first;
		*f->first = (struct newborn){ NEWBORN_INIT };
	}
	r = newborn_fork(ns, n, &s->state, s->catalog, &from->of, names, e);
	if (r == 0)
		r = finish(ns, n, f, first, e);
	for (unsigned i = 0; i < n; i++)
		newborn_done(&ns[i]);
	return r;
}

int origin_fork(struct cli_store *s, const struct origin *from, const struct forks *f,
		struct err *e)
{
	auto_free struct newborn *ns = calloc(TOGETHER, sizeof *ns);
	int r = 0;

	if (!ns)
		return err_sys(e, ENOMEM, "fork");
	for (unsigned first = 0; first < f->count && r == 0; first += TOGETHER)
		r = fork_some(s, from, f, ns, first, e);
	/* Whoever could have claimed some sees to it that others can. */
	keeper_tend(&s->state);
	return r < 0 ? -1 : 0;
}

static int print_one(void *ctx, unsigned i, const struct newborn *n)
{
	(void)i;
	print_made(ctx, n);
	/* Who is interrupted has been told of all that are there. */
	(void)fflush(stdout);
	return 0;
}

/* Its warden starts while we read the catalog, unless there may be one that is ready. */
static int open_early(struct cli_store *s, struct newborn *first, struct err *e)
{
	if (cli_store_open_state(s, e) < 0)
		return -1;
	if (!warm_exists(&s->state) && newborn_hatch(first, &s->state, e) < 0)
		return -1;
	return catalog_open(&s->state, &s->catalog, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(newborn_done) struct newborn first = { NEWBORN_INIT };
	struct forks f = { o.name, o.count > 1, o.count ? (unsigned)o.count : 1,
			   NULL,   print_one,	ctx };
	struct err ignored = { 0 };
	struct origin from = { 0 };
	int r;

	if (cmd_need_args(ctx, 1, 1, "a sandbox or snapshot", e) < 0)
		return -1;
	if (o.count > MOST)
		return err_set(e, ERR_INVALID, "--count: at most %d", MOST);
	if (o.name && !state_name_ok(o.name))
		return err_set(
			e, ERR_INVALID,
			"--name '%.200s': letters, digits and '_.-', a letter or digit first",
			o.name);
	r = open_early(&s, &first, e);
	if (r == 0)
		r = origin_open(&s, ctx->args[0], &from, e);
	if (r < 0) {
		(void)newborn_destroy(&first, &ignored);
		return -1;
	}
	f.first = first.warden_fd >= 0 ? &first : NULL;
	r = origin_fork(&s, &from, &f, e);
	origin_close(&s, &from);
	return r;
}

const struct cmd cmd_fork = {
	.name = "fork",
	.synopsis = "[options] SANDBOX|SNAPSHOT",
	.summary = "Make sandboxes with the same files and options as another has now",
	.details = "Files, environment, limits, profile and mounts are the same; id, host name and "
		   "machine id are the new one's own. Commands that run in the first go on there "
		   "and are not copied. Prints the ids.",
	.examples = "cay fork work\ncay fork before-upgrade --count 4 --name try",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
