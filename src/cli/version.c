/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "wire/proto.h"

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct out_json j = { .f = stdout };

	if (cmd_need_args(ctx, 0, 0, "", e) < 0)
		return -1;
	if (!ctx->json) {
		printf("%s%s\n", ctx->quiet ? "" : "cay ", CAY_VERSION);
		return 0;
	}
	out_json_open(&j, NULL, '{');
	out_json_c(&j, "version", CAY_VERSION);
	out_json_num(&j, "client_protocol", PROTO_CLIENT_VERSION);
	out_json_num(&j, "init_protocol", PROTO_INIT_VERSION);
	out_json_close(&j, '}');
	out_json_line(&j);
	return 0;
}

const struct cmd cmd_version = {
	.name = "version",
	.synopsis = "[--json]",
	.summary = "Print the version",
	.run = run,
	.data = true,
};
