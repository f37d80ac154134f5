/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a detached cay process that outlives this process. */
#pragma once

#include "ops/cay.h"

enum { RECORD_ENV = 3, RECORD_ENV_TEXT = 64 };

/* The record settings (struct cay_config) as environment variables for a child process. */
struct record_env {
	char text[RECORD_ENV][RECORD_ENV_TEXT];
};

/* Sets up to RECORD_ENV entries of envp, which point into env, then a NULL. */
void record_env(const struct cay_config *c, struct record_env *env, char **envp);

/* words: the command and its arguments, at most 4, then NULL. Ignores a failure to start. */
void background_start(struct cay *c, const char *const *words);
/* Merge deep stacks of layers. */
void background_flatten(struct cay *c);
/* Start a keeper to fill the pools, if a pool exists and no keeper runs. */
void background_keeper(struct cay *c);
/* The same; also wakes a running keeper, because pool rows have changed. */
void background_keeper_wake(struct cay *c);
