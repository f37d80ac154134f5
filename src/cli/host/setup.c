/* SPDX-License-Identifier: Apache-2.0 */
/* cay setup: one-time preparation of a host by root. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/storage.h"

static uint64_t size;
static bool want_removal;
static struct opt opts[] = {
	{ "size", 0, OPT_SIZE, "SIZE",
	  "Of the file that holds the storage; default: half of the free space", &size },
	{ "remove", 0, OPT_FLAG, NULL, "Take the storage away again", &want_removal },
	{ 0 },
};

static int print(const struct cmd_ctx *ctx, struct cay *c, const char *done, struct err *e)
{
	struct json_line j;
	struct storage_info info;
	char total[OUT_NUMBER], left[OUT_NUMBER];
	int r = op_storage_info(c, &info, e);

	if (r < 0)
		return -1;
	if (ctx->json) {
		json_line_begin(&j);
		json_obj(&j.json);
		json_put_bool(&j.json, "storage", r > 0);
		if (r > 0) {
			json_put_text(&j.json, "path", info.path);
			json_put_bool(&j.json, "image", info.image);
			json_put_bool(&j.json, "quota", info.quota);
			json_put_i64(&j.json, "size", (int64_t)info.size);
			json_put_i64(&j.json, "free", (int64_t)info.free);
		}
		json_end(&j.json);
		json_line_print(&j);
	} else if (!ctx->quiet && r > 0) {
		printf("%s: %s, %s, %s free. Sandboxes with --disk write there, and are held "
		       "to it by btrfs.\n",
		       done, info.path, out_size(info.size, total), out_size(info.free, left));
	} else if (!ctx->quiet) {
		printf("%s.\n", done);
	}
	return 0;
}

static int make(struct cmd_ctx *ctx, struct cay *c, struct err *e)
{
	const struct storage_spec spec = { ctx->nargs > 1 ? ctx->args[1] : NULL, size };
	bool made;

	if (spec.dir && size && !storage_exists(&c->state))
		return cmd_usage(ctx, e, "--size is for storage in a file, not in '%s'", spec.dir);
	if (op_storage_make(c, &spec, &made, e) < 0)
		return -1;
	return print(ctx, c, made ? "Storage is set up" : "There is storage already", e);
}

static int take_away(struct cmd_ctx *ctx, struct cay *c, struct err *e)
{
	if (ctx->nargs > 1 || size)
		return cmd_usage(ctx, e, "--remove goes alone");
	return op_storage_remove(c, e) < 0 ? -1 : print(ctx, c, "There is no storage", e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };

	if (cmd_need_args(ctx, 1, 2, "what to set up", e) < 0)
		return -1;
	if (strcmp(ctx->args[0], "storage") != 0)
		return cmd_usage(ctx, e, "'%s' cannot be set up; there is: storage", ctx->args[0]);
	if (geteuid() != 0) {
		(void)err_set(e, ERR_NOT_ALLOWED, "setting up storage needs root");
		return err_code(e, "storage.root", NULL);
	}
	if (cli_open(&s, e) < 0)
		return -1;
	return want_removal ? take_away(ctx, &s, e) : make(ctx, &s, e);
}

const struct cmd cmd_setup = {
	.name = "setup",
	.synopsis = "storage [--size SIZE | DIR] | storage --remove",
	.summary = "Prepare this host: storage for limits on disk and quick snapshots",
	.details =
		"Storage is a btrfs: a sparse file in the state directory, mounted when it is needed, "
		"or a new directory on a btrfs that is there. Every sandbox that root makes from "
		"then on has its files and snapshots in it. --disk is a quota there, on what was "
		"written since the last snapshot or rollback: who would pass it gets the error "
		"EDQUOT. A snapshot while commands run copies nothing, so that they stand still "
		"only for milliseconds. Without storage what a sandbox writes is watched, and its "
		"calls are killed above the limit. Needs root and, for a file, btrfs-progs. "
		"Sandboxes and snapshots that exist stay where they are. Pools of sandboxes that "
		"are ready before they are asked for are another thing: cay pool set.",
	.examples = "sudo cay setup storage --size 50G\n"
		    "sudo cay setup storage /mnt/btrfs/cay\n"
		    "sudo cay setup storage --remove",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "storage",
};
