/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static bool want_lost;
static struct opt opts[] = {
	{ "lost", 0, OPT_FLAG, NULL, "Also remove lost sandboxes and what is in them", &want_lost },
	{ 0 },
};

struct report {
	const struct cmd_ctx *ctx;
	int code; /* of the first failure */
};

static void report_failure(void *ctx, const struct err *e)
{
	struct report *r = ctx;
	int code = cmd_report(r->ctx, e);

	r->code = r->code ? r->code : code;
}

static void print(const struct cmd_ctx *ctx, const struct gc_result *r, bool failed)
{
	char size[OUT_NUMBER];

	if (ctx->json) {
		PRINT_JSON(json_gc, r);
		return;
	}
	if (ctx->quiet)
		return;
	if (r->removed + r->lost_removed + r->layers + r->bases > 0)
		printf("Removed %d leftover%s, %d lost sandbox%s and %d layer%s: %s freed.\n",
		       r->removed, r->removed == 1 ? "" : "s", r->lost_removed,
		       r->lost_removed == 1 ? "" : "es", r->layers + r->bases,
		       r->layers + r->bases == 1 ? "" : "s", out_size(r->bytes, size));
	else if (!failed)
		puts("Nothing to remove.");
	if (r->lost_kept)
		fprintf(stderr, "%d lost, kept; remove with: cay gc --lost\n", r->lost_kept);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct report report = { .ctx = ctx };
	const struct gc_spec spec = { .lost = want_lost, .failed = report_failure, .ctx = &report };
	struct gc_result r;
	int done;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || cli_open(&c, e) < 0)
		return -1;
	done = op_gc(&c, &spec, &r, e);
	print(ctx, &r, done < 0);
	return done < 0 ? -1 : report.code;
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
