/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

/* clang-format off */
const struct cmd *const commands[] = {
	&cmd_version,
	&cmd_help,
	NULL,
};
/* clang-format on */
