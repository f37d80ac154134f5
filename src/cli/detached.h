/* SPDX-License-Identifier: Apache-2.0 */
/* A cay that nobody waits for, and that outlives us. */
#pragma once

/* words: the command and its arguments, NULL at the end; at most 4. Failing to start it is no
 * error. */
void detached_start(const char *state_dir, const char *const *words);
