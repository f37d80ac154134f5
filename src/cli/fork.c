/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/fork.h"
#include "cli/moment.h"
#include "cli/newborn.h"
#include "cli/output.h"

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

	if (moment_open(&m, s, id, e) < 0 || moment_snapshot(&m, &row, NULL, e) < 0)
		return -1;
	(void)str_copy(ret->recipe_of, sizeof ret->recipe_of, str_of(m.row.id));
	(void)str_copy(ret->top, sizeof ret->top, str_of(row.top));
	(void)str_copy(ret->holder, sizeof ret->holder, str_of(row.id));
	return 0;
}

int origin_open(struct cli_store *s, const char *ref, struct origin *ret, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row box = { 0 };
	struct err none = { 0 };

	if (strncmp(ref, "snap:", 5) != 0 && catalog_find(s->catalog, ref, &box, &none) == 0)
		return from_sandbox(s, box.id, ret, e);
	if (catalog_find_snapshot(s->catalog, ref, &snap, e) < 0) {
		if (e->kind == ERR_NOT_FOUND && strncmp(ref, "snap:", 5) != 0) {
			err_set(e, ERR_NOT_FOUND, "no sandbox or snapshot '%s'", ref);
			return err_hint(e, "list them with: cay ls, cay snapshots");
		}
		return -1;
	}
	(void)str_copy(ret->recipe_of, sizeof ret->recipe_of, str_of(snap.sandbox));
	(void)str_copy(ret->top, sizeof ret->top, str_of(snap.top));
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

	if (from->holder[0])
		(void)catalog_del_snapshot(s->catalog, from->holder, &ignored);
	from->holder[0] = '\0';
}

int origin_fork(struct cli_store *s, const struct origin *from, const char *name, struct newborn *n,
		struct err *e)
{
	struct err ignored = { 0 };

	if (n->warden_fd < 0 && newborn_hatch(n, &s->state, e) < 0)
		return -1;
	if (newborn_fork(n, s->catalog, from->recipe_of, from->top, name, e) < 0)
		return -1;
	if (newborn_await(n, e) == 0 && newborn_release(n, e) == 0)
		return 0;
	(void)newborn_destroy(n, &ignored);
	return -1;
}

static int fork_all(const struct cmd_ctx *ctx, struct cli_store *s, const struct origin *from,
		    struct newborn *n, struct err *e)
{
	uint64_t count = o.count ? o.count : 1;
	char name[80];

	for (uint64_t i = 1; i <= count; i++) {
		(void)snprintf(name, sizeof name, "%s-%llu", o.name ? o.name : "",
			       (unsigned long long)i);
		if (origin_fork(s, from, count > 1 && o.name ? name : o.name, n, e) < 0)
			return -1;
		print_made(ctx, n);
		newborn_done(n);
		*n = (struct newborn){ NEWBORN_INIT };
	}
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(newborn_done) struct newborn first = { NEWBORN_INIT };
	struct err ignored = { 0 };
	struct origin from = { 0 };
	int r;

	if (cmd_need_args(ctx, 1, 1, "a sandbox or snapshot", e) < 0)
		return -1;
	if (o.name && !state_name_ok(o.name))
		return err_set(
			e, ERR_INVALID,
			"--name '%.200s': letters, digits and '_.-', a letter or digit first",
			o.name);
	if (cli_store_open_state(&s, e) < 0 || newborn_hatch(&first, &s.state, e) < 0)
		return -1;
	if (catalog_open(&s.state, &s.catalog, e) < 0 ||
	    origin_open(&s, ctx->args[0], &from, e) < 0) {
		(void)newborn_destroy(&first, &ignored);
		return -1;
	}
	r = fork_all(ctx, &s, &from, &first, e);
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
