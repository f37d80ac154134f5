/* SPDX-License-Identifier: Apache-2.0 */
/* Every command's row. */
#pragma once

#include "cli/cmd.h"

extern const struct cmd cmd_version, cmd_help;
