/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the history of a sandbox's policy. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Prints each event on stdout: time, author, policy, and the added and removed rules. */
void policy_history_print(const json_t *history, const char *before);
/* Appends "2026-01-02T03:04:05Z by cay (pid 12, uid 0)". */
int policy_history_who(const json_t *event, struct buf *out);
