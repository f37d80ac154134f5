/* SPDX-License-Identifier: Apache-2.0 */
/* E2B's control plane, in a worker: each handler checks the owner, calls one operation, and writes
 * the answer as E2B's clients read it. */
#pragma once

#include "ops/job/job.h"

/* e2b/create.c */
int e2b_create(struct job_run *r, struct err *e);
/* e2b/list.c */
int e2b_list(struct job_run *r, struct err *e);
/* e2b/sandboxes.c */
int e2b_info(struct job_run *r, struct err *e);
int e2b_kill(struct job_run *r, struct err *e);
int e2b_timeout(struct job_run *r, struct err *e);
int e2b_refresh(struct job_run *r, struct err *e);
int e2b_pause(struct job_run *r, struct err *e);
int e2b_resume(struct job_run *r, struct err *e);
int e2b_connect(struct job_run *r, struct err *e);
int e2b_network(struct job_run *r, struct err *e);
/* The sandbox is used: let it go on, for as long as it was given at first. */
int e2b_wake(struct job_run *r, struct err *e);
/* e2b/sample.c */
int e2b_metrics(struct job_run *r, struct err *e);
int e2b_metrics_list(struct job_run *r, struct err *e);
/* e2b/snapshots.c */
int e2b_snapshot(struct job_run *r, struct err *e);
int e2b_snapshots(struct job_run *r, struct err *e);
int e2b_snapshot_remove(struct job_run *r, struct err *e);
/* e2b/secrets.c */
int e2b_secret_create(struct job_run *r, struct err *e);
int e2b_secret_update(struct job_run *r, struct err *e);
int e2b_secret_info(struct job_run *r, struct err *e);
int e2b_secret_remove(struct job_run *r, struct err *e);
int e2b_secrets(struct job_run *r, struct err *e);
/* e2b/fork.c */
int e2b_fork(struct job_run *r, struct err *e);
/* e2b/sign_search.c: whose signature it is. */
int e2b_signed(struct job_run *r, struct err *e);
/* A link for the front. The front has checked the sandbox's token. */
int e2b_link(struct job_run *r, struct err *e);
