/* SPDX-License-Identifier: Apache-2.0 */
/* Describes ended sandboxes for people. */
#pragma once

#include "cli/cmd.h"
#include "ops/ended.h"

/* The last call, as "2: exit 1" or "3: oom"; empty if there was none. */
void end_text_call(const struct trace_story *s, char *out, size_t size);
/* cay ls --ended */
int end_text_list(const struct cmd_ctx *ctx, struct cay *c, bool header, bool wide, struct err *e);
