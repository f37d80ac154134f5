/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command: its own rows, then the common rows. An own row hides a common row with the
 * same name or letter.
 */
#pragma once

#include <stdint.h>

#include "base/number.h"
#include "base/str.h"
#include "cli/cmd.h"

/* The i-th option of cmd, own rows first, or NULL after the last. */
const struct opt *option_at(const struct cmd *cmd, int i);
bool option_is_common(const struct opt *o);
const struct opt *option_long(const struct cmd *cmd, struct str name);
const struct opt *option_letter(const struct cmd *cmd, char letter);

/*
 * Parse the words after the command's name for ctx->cmd. Sets the rows' values and fills ctx;
 * reorders argv and uses it for ctx->args. Stops at --help. ctx->json is valid even on failure, so
 * that the error can be printed as JSON.
 */
int options_parse(struct cmd_ctx *ctx, int argc, char **argv, struct err *e);

/* 0 or -1; see OPT_DURATION. */
int duration_parse(const char *text, uint64_t *ret_ms);
