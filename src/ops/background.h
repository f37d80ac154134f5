/* SPDX-License-Identifier: Apache-2.0 */
/* A cay that nobody waits for, and that outlives us. */
#pragma once

#include "ops/cay.h"

enum { RECORD_ENV = 3, RECORD_ENV_TEXT = 64 };

/* The settings of the record (struct cay_config) as variables for a process that we start. */
struct record_env {
	char text[RECORD_ENV][RECORD_ENV_TEXT];
};

/* Sets up to RECORD_ENV entries of envp, which point into env, and a NULL after them. */
void record_env(const struct cay_config *c, struct record_env *env, char **envp);

/* words: the command and its arguments, NULL at the end; at most 4. Failing to start it is no
 * error. */
void background_start(struct cay *c, const char *const *words);
/* Merge deep stacks of layers. */
void background_flatten(struct cay *c);
/* Fill the pools, where there is something to keep and nobody who does. */
void background_keeper(struct cay *c);
/* The same, and where there is a keeper let it look at once: rows have changed. */
void background_keeper_wake(struct cay *c);
