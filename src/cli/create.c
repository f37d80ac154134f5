/* SPDX-License-Identifier: Apache-2.0 */
/* cay create: a sandbox that stays. */
#include <stdio.h>

#include "cli/newborn.h"
#include "cli/output.h"

static struct sandbox_opts o;
static struct opt opts[] = {
	SANDBOX_OPTS_BUILD(o), SANDBOX_OPTS_CALL(o),	    LIMIT_OPTS_BUILD(o.limits),
	NET_OPTS_BUILD(o.net), LIMIT_OPTS_EFFORT(o.limits), { 0 },
};

static void print_json(const struct newborn *n)
{
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", n->row.id);
	out_json_c(&j, "name", n->row.name);
	out_json_c(&j, "template", n->row.template_);
	out_json_time(&j, "created", n->row.created_ns);
	out_json_ms(&j, "start_ms", n->start_us);
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(newborn_done) struct newborn n = { NEWBORN_INIT };
	struct err ignored = { 0 };

	if (cmd_need_args(ctx, 0, 0, "arguments", e) < 0)
		return -1;
	if (newborn_create(&n, &o, false, e) < 0)
		return -1;
	if (newborn_await(&n, e) < 0 || newborn_release(&n, e) < 0) {
		(void)newborn_destroy(&n, &ignored);
		return -1;
	}
	(void)catalog_note_template(n.catalog, n.row.template_, "builtin", &ignored);
	if (ctx->json)
		print_json(&n);
	else
		printf("%s\n", n.row.id);
	return 0;
}

const struct cmd cmd_create = {
	.name = "create",
	.synopsis = "[options]",
	.summary = "Make a sandbox that stays until it is killed, and print its id",
	.details =
		"Commands are run in it with cay exec and cay shell. Options such as --env, --cwd "
		"and --user are the defaults of every command in it.",
	.examples = "cay create --name work --dir .\n"
		    "id=$(cay create); cay exec $id -- make; cay kill $id",
	.run = run,
	.opts = opts,
	.data = true,
};
