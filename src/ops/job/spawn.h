/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes, started with posix_spawn(3) and watched by pidfd. A worker gets its socket as
 * descriptor 3 and an eventfd as descriptor 4.
 */
#pragma once

#include <sys/types.h>

#include "ops/job/queue.h"

enum { WORKER_SOCKET = 3, WORKER_CANCEL = 4 };

struct job_process {
	struct job_spawner *spawner;
	pid_t pid; /* 0: none */
	int pidfd;
	struct loop_io io;
};

struct job_spawner {
	struct loop *loop; /* borrowed, like all of these */
	const char *program;
	char *const *argv;
	char *const *envp;
	/*
	 * Same contract as job_queue_started() and job_queue_gone(): for a queue in this process,
	 * or on behalf of a queue in another process.
	 */
	void (*started)(void *ctx, int slot, int sock, int cancel_fd);
	void (*gone)(void *ctx, int slot);
	void *ctx;
	struct job_process processes[JOB_WORKERS];
};

/* The owner must set every field above `processes` first. */
void job_spawner_init(struct job_spawner *s);
/* Calls started() or gone() before it returns. */
void job_spawner_start(struct job_spawner *s, int slot);
/* Watch a worker that this process started before it was replaced by execve(2). 0 or -errno. */
int job_spawner_adopt(struct job_spawner *s, int slot, pid_t pid);
void job_spawner_kill(struct job_spawner *s, int slot);
/* The number of running workers. */
int job_spawner_count(const struct job_spawner *s);
/* Kill all workers and wait until they have ended. */
void job_spawner_done(struct job_spawner *s);

/* A host for a queue in this process: ctx of s must be the queue. */
struct job_host job_spawner_host(struct job_spawner *s);
void job_spawner_serve(struct job_spawner *s, struct job_queue *q);
