/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that have ended, for people. */
#pragma once

#include "cli/cmd.h"
#include "ops/ended.h"

/* "2: exit 1", "3: oom": the last call; empty where there is none. */
void end_text_call(const struct trace_story *s, char *out, size_t size);
/* cay ls --ended */
int end_text_list(const struct cmd_ctx *ctx, struct cay *c, bool header, bool wide, struct err *e);
