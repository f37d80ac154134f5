/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a sandbox's policy, for people. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Each event as lines on stdout: when, who, which policy, which rules came and went. */
void policy_history_print(const json_t *history, const char *before);
/* "2026-01-02T03:04:05Z by cay (pid 12, uid 0)", appended. */
int policy_history_who(const json_t *event, struct buf *out);
