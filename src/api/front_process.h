/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front and its workers, as the supervisor sees them. Usually there is one. After a restart the
 * old front lives on until its last connection ends, with its own workers.
 *
 *   front_process_new ── F_TLS, F_BEGIN ──> runs ── ready() ──> serves ── ended() ──> workers end
 * ── gone()
 *
 * The front is not trusted: it can ask for workers of a few slots, for their end, and for a line of
 * the access log, and nothing else.
 */
#pragma once

#include "api/control.h"
#include "loop/conn.h"
#include "ops/job/spawn.h"

struct front_process;

struct front_process_ops {
	/* It accepts clients. Once. */
	void (*ready)(struct front_process *f);
	/* The process has ended; its workers may still finish their jobs. */
	void (*ended)(struct front_process *f);
	/* A line for the access log, from a process that is not trusted. */
	void (*log)(struct front_process *f, struct str record);
	/* Process and workers have ended: f is freed afterwards. */
	void (*gone)(struct front_process *f);
};

struct front_process {
	struct loop *loop;
	const struct front_process_ops *ops;
	void *user; /* the supervisor */
	struct conn control;
	pid_t pid; /* 0: it has ended */
	int pidfd;
	struct loop_io io;
	struct loop_timer kill;
	struct job_spawner workers;
	bool ready, old;
	struct front_process *next;
};

struct front_process_config {
	const char *program, *role;
	char *const *worker_argv, *const *worker_envp;
};

/* Starts the process in its jail. The caller sends F_BEGIN. 0 or -errno. */
int front_process_new(struct front_process **ret, struct loop *l,
		      const struct front_process_config *config,
		      const struct front_process_ops *ops, void *user);
/* A front that this process started before it was replaced by execve(2). Owns control. */
int front_process_adopt(struct front_process **ret, struct loop *l,
			const struct front_process_config *config,
			const struct front_process_ops *ops, void *user, pid_t pid, int control);
/* Ask it to finish and end; kill it after a while. */
void front_process_stop(struct front_process *f);
/* Kill everything that is left of it, wait for that, and free f. */
void front_process_free(struct front_process *f);
