/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that a server is started as. It holds the listeners, starts the front in a jail and
 * the workers, and starts them again when they die. It reads no byte that a client wrote.
 */
#pragma once

#include "api/access_log.h"
#include "api/certs.h"
#include "api/control.h"
#include "api/handover.h"
#include "base/err.h"
#include "store/state.h"

struct supervisor_config {
	const struct state *state;
	const char *program; /* of front and workers: cay */
	char *const *worker_argv, *const *worker_envp;
	const char *front_role;			     /* the front is started as: cay ROLE */
	const char *const *domains, *const *origins; /* of the front (api/names.h) */
	int ndomains, norigins;
	int listeners[CONTROL_LISTENERS];	       /* borrowed */
	const char *listener_names[CONTROL_LISTENERS]; /* as in struct handover */
	int nlisteners;
	struct handover *left;	   /* by the program before a restart; NULL: none */
	char *const *restart_argv; /* arguments of the program that replaces this one */
	unsigned tls_listeners;	   /* bit i: clients of listener i speak TLS */
	struct certs *certs;	   /* loaded; NULL: no TLS */
	struct access_log *log;	   /* open; NULL: none */
	/* Once, when clients are answered. */
	void (*ready)(void *ctx);
	/* Whether the options in a file have changed since they were read. */
	bool (*config_changed)(void *ctx);
	/* Something that the host's user should know; may be called at any time. */
	void (*say)(void *ctx, const char *text);
	void *ctx;
};

/*
 * Until SIGTERM or SIGINT; answers under way are finished. SIGHUP: read the certificate and open
 * the access log again, or restart if the options have changed. SIGUSR2: replace this program by
 * the one on disk; listeners, plain connections and requests under way go on. These signals are
 * blocked from then on.
 */
int supervise(const struct supervisor_config *config, struct err *e);
