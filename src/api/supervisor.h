/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that a server is started as. It holds the listeners, starts the front in a jail and
 * the workers, and starts them again when they die. It reads no byte that a client wrote.
 */
#pragma once

#include "api/control.h"
#include "base/err.h"
#include "store/state.h"

struct supervisor_config {
	const struct state *state;
	const char *program; /* of front and workers: cay */
	char *const *worker_argv, *const *worker_envp;
	const char *front_role;			     /* the front is started as: cay ROLE */
	const char *const *domains, *const *origins; /* of the front (api/names.h) */
	int ndomains, norigins;
	int listeners[CONTROL_LISTENERS]; /* borrowed */
	int nlisteners;
	/* Once, when clients are answered. */
	void (*ready)(void *ctx);
	void *ctx;
};

/* Until SIGTERM or SIGINT, which are blocked from then on. Answers under way are finished. */
int supervise(const struct supervisor_config *config, struct err *e);
