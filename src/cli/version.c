/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "ops/json.h"

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct json_line j;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0)
		return -1;
	if (!ctx->json) {
		printf("%s%s\n", ctx->quiet ? "" : "cay ", CAY_VERSION);
		return 0;
	}
	json_line_begin(&j);
	json_version(&j.json);
	json_line_print(&j);
	return 0;
}

const struct cmd cmd_version = {
	.name = "version",
	.synopsis = "[--json]",
	.summary = "Print the version",
	.run = run,
	.data = true,
};
