/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/sandboxes.h"

/* Merge what is too deep. wait: until another who does so is done; else leave it to that one. */
int tidy_now(struct cli_store *s, bool wait, struct err *e);
/* Before a layer is added: at once where it must be, else when the store is closed. */
int tidy_stack(struct cli_store *s, size_t depth, struct err *e);
/* In the background. */
void tidy_start(const char *state_dir);
