/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/sandboxes.h"

/* Merge what is too deep. wait: until another who does so is done; else leave it to that one. */
int tidy_now(struct cli_store *s, bool wait, struct err *e);
/* After a layer was added: in the background where the stack is deep, at once where it must be. */
int tidy_stack(struct cli_store *s, size_t depth, struct err *e);
