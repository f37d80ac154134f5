/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

/* clang-format off */
const struct cmd *const commands[] = {
	&cmd_run,
	&cmd_create,
	&cmd_exec,
	&cmd_shell,
	&cmd_cp,
	&cmd_ls,
	&cmd_show,
	&cmd_ps,
	&cmd_kill,
	&cmd_snapshot,
	&cmd_snapshots,
	&cmd_rollback,
	&cmd_fork,
	&cmd_tx,
	&cmd_trace,
	&cmd_gc,
	&cmd_doctor,
	&cmd_setup,
	&cmd_completion,
	&cmd_version,
	&cmd_help,
	&cmd_settle,
	&cmd_complete,
	NULL,
};
/* clang-format on */
