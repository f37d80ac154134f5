/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual page, generated from the tables of commands and options. All return 0. */
#pragma once

#include "cli/cmd.h"

int help_overview(bool color);
/* Help for the commands of a group. */
int help_group(const char *group, bool color);
int help_command(const struct cmd *cmd, bool color);
/* cay(1) in man(7) markup. */
int help_man(void);
