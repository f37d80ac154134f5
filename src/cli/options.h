/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command: its own rows, then the ones that every command has. An own row
 * hides a common one of the same name or letter.
 */
#pragma once

#include <stdint.h>

#include "base/number.h"
#include "base/str.h"
#include "cli/cmd.h"

/* The i-th option of cmd, own ones first, or NULL after the last. */
const struct opt *option_at(const struct cmd *cmd, int i);
bool option_is_common(const struct opt *o);
const struct opt *option_long(const struct cmd *cmd, struct str name);
const struct opt *option_letter(const struct cmd *cmd, char letter);

/*
 * Parse what follows the command's name for ctx->cmd. Sets the rows' values and fills ctx;
 * argv is reordered and used for ctx->args. Stops at --help. On failure ctx->json is right
 * all the same, so that the error can be said as JSON.
 */
int options_parse(struct cmd_ctx *ctx, int argc, char **argv, struct err *e);

/* 0 or -1; see OPT_DURATION. */
int duration_parse(const char *text, uint64_t *ret_ms);
